import { namesToRemove, RemovalCommand, removalFlags } from '../../ui/command/removal.ts'
import { findScript } from '../../ui/names/names.ts'

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
    return this.removeNamed(
      args.script,
      {
        find: (name) => findScript(client, name),
        noun: 'script',
        nameOf: (script) => script.name,
        remove: ({ id }) => client.scripts.remove(id),
      },
      flags.yes,
    )
  }
}
