import { LocalCommand } from '../../cli/command/base-command.ts'

export default class AgentSelftest extends LocalCommand {
  static override summary = 'Test whether this rsm works as an agent on this host, as upgrades do'
  static override examples = ['$ rsm agent selftest']

  async run() {
    await this.parse(AgentSelftest)
    const { selftest } = await import('../../agent/upgrade/selftest.ts')
    const tried = await selftest()
    this.print(`rsm ${tried.version} works here`)
    return tried
  }
}
