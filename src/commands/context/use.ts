import { LocalCommand } from '../../cli/command/base-command.ts'
import { Contexts } from '../../cli/contexts/contexts.ts'
import { needed } from '../../cli/flags/checks.ts'

export default class ContextUse extends LocalCommand {
  static override summary = 'Use another known server from now on'
  static override examples = ['$ rsm context use production']
  static override args = { name: needed('name of the context') }

  async run() {
    const { args } = await this.parse(ContextUse)
    const { url } = new Contexts().use(args.name)
    this.done(`now using ${args.name} (${url})`)
    return { name: args.name, url }
  }
}
