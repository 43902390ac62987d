import { boolean } from '@oclif/core/flags'
import { LocalCommand } from '../../cli/command/base-command.ts'
import { Contexts } from '../../cli/contexts/contexts.ts'
import { needed } from '../../cli/flags/checks.ts'
import { confirmRemoval } from '../../cli/input/prompt.ts'
import { RsmError } from '../../core/errors.ts'
import { unknownName } from '../../core/text/nearest.ts'

export default class ContextRemove extends LocalCommand {
  static override summary = 'Forget a known server and its token'
  static override examples = ['$ rsm context remove old --yes']
  static override args = { name: needed('name of the context') }
  static override flags = { yes: boolean({ char: 'y', description: 'do not ask' }) }

  async run() {
    const { args, flags } = await this.parse(ContextRemove)
    const contexts = new Contexts()
    const names = Object.keys(contexts.list().contexts)
    if (!names.includes(args.name))
      throw new RsmError('not_found', unknownName('context', args.name, names), { hint: 'rsm context list' })
    await confirmRemoval(`context ${args.name}`, flags.yes)
    contexts.remove(args.name)
    this.done(`forgot ${args.name}`)
    return { name: args.name }
  }
}
