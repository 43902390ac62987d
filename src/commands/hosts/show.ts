import { string } from '@oclif/core/args'
import { findHost } from '../../client/names.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { hostFields, runsUnbounded } from '../../ui/hosts/view.ts'

export default class HostsShow extends BaseCommand {
  static override summary = 'Show a host: its state, system, agent and last metrics'
  static override examples = ['$ rsm hosts show web1']
  static override args = {
    host: string({ required: true, ignoreStdin: true, description: 'hostname, or @id:17' }),
  }

  async run() {
    const { args, flags } = await this.parse(HostsShow)
    this.globals = flags
    const host = await findHost(await this.client(), args.host)
    const { renderFields } = await import('../../ui/text/table.ts')
    const warned = runsUnbounded(host.agent) ? ['scripts run as'] : []
    this.print(renderFields(hostFields(host, flags.utc), warned))
    if (runsUnbounded(host.agent))
      this.hint('     scripts can do anything there: rsm agent run --run-as USER, or --sandbox strict')
    return host
  }
}
