import { findScript } from '../../client/names.ts'
import type { Script } from '../../core/protocol/http/scripts.ts'
import { namesToRemove, RemovalCommand, removalFlags } from '../../ui/command/removal.ts'

export default class ScriptsRemove extends RemovalCommand {
  static override summary = 'Remove a stored script; tasks keep the text that they ran'
  static override examples = ['$ rsm scripts remove deploy --yes']
  static override args = {
    script: namesToRemove('names of scripts'),
  }
  static override flags = { ...removalFlags }

  async run() {
    const { args, flags } = await this.parse(ScriptsRemove)
    this.globals = flags
    const client = await this.client()
    const names = args.script
    const found = await this.lookUp(names, (name) => findScript(client, name))
    const removed = await this.removeAll(
      found,
      {
        noun: 'script',
        nameOf: (script: Script) => script.name,
        remove: ({ id }) => client.scripts.remove(id),
      },
      flags.yes,
    )
    return names.length === 1 ? removed[0] : removed
  }
}
