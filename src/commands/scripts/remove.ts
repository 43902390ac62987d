import { string } from '@oclif/core/args'
import { boolean } from '@oclif/core/flags'
import { findScript } from '../../client/names.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { confirmRemoval } from '../../ui/input/prompt.ts'

export default class ScriptsRemove extends BaseCommand {
  static override summary = 'Remove a stored script; tasks keep the text that they ran'
  static override examples = ['$ rsm scripts remove deploy --yes']
  static override args = {
    script: string({ required: true, ignoreStdin: true, description: 'name of the script' }),
  }
  static override flags = { yes: boolean({ char: 'y', description: 'do not ask' }) }

  async run() {
    const { args, flags } = await this.parse(ScriptsRemove)
    this.globals = flags
    const client = await this.client()
    const script = await findScript(client, args.script)
    await confirmRemoval(`script ${script.name}`, flags.yes)
    const removed = await client.scripts.remove(script.id)
    this.print(`removed ${script.name}`)
    return removed
  }
}
