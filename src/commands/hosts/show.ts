import { BaseCommand } from '../../cli/command/base-command.ts'
import { oneOrMore } from '../../cli/flags/checks.ts'
import { hostsDescription } from '../../cli/flags/hosts.ts'
import { hostFields } from '../../cli/hosts/view.ts'
import { findHosts, namesOneHost } from '../../cli/names/names.ts'
import { isUnbounded } from '../../core/checks/setting-checks.ts'

export default class HostsShow extends BaseCommand {
  static override summary = 'Show hosts: their state, system, agent and last metrics'
  static override examples = ['$ rsm hosts show web1', '$ rsm hosts show web1 web2']
  static override args = { host: oneOrMore(hostsDescription) }

  async run() {
    const { args, flags } = await this.parse(HostsShow)
    const hosts = await findHosts(await this.client(), args.host)
    const { renderFields } = await import('../../cli/text/table.ts')
    const sections = hosts.map((host) => {
      const warned = isUnbounded(host.agent ?? {}) ? ['scripts run as'] : []
      return renderFields(hostFields(host, flags.utc), warned)
    })
    await this.printLong(sections.join('\n\n'))
    if (hosts.some((host) => isUnbounded(host.agent ?? {})))
      this.hint('     scripts can do anything there: rsm agent run --run-as USER, or --sandbox strict')
    return namesOneHost(args.host) ? hosts[0] : hosts
  }
}
