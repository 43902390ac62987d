import { BaseCommand } from '../../cli/command/base-command.ts'
import { optional } from '../../cli/flags/checks.ts'
import { complains } from '../../core/checks/finding.ts'

export default class HostsDoctor extends BaseCommand {
  static override summary = 'Diagnose hosts and suggest fixes; exit 0 if they are healthy, 1 if not'
  static override description =
    'For several hosts, equal findings are grouped, worst first, and the server is checked too: versions, clocks, ' +
    'certificate. Errors (no script can run there) and warnings exit 1; notes, such as scripts running as root, do ' +
    'not.\n\n' +
    '--json: {server, hosts: [{host, id, status, statusReason, findings, well}]}; a finding is {code, severity, ' +
    'message, advice}, its severity error, warning or note; server is {url, version, findings, well}, and null for ' +
    'one HOST.'
  static override examples = [
    '$ rsm hosts doctor web1',
    '$ rsm hosts doctor',
    "$ rsm hosts doctor 'web*' --json",
  ]
  static override args = { host: optional('hostname, @id:17 or a selector (default: all hosts)') }

  async run() {
    const { args } = await this.parse(HostsDoctor)
    const client = await this.client()
    const { examineFleet } = await import('../../cli/hosts/doctor.ts')
    const { examinationData, showHost, showFleet } = await import('../../cli/hosts/findings-view.ts')
    const { server, hosts } = await examineFleet(
      client,
      { ...this.server(), version: this.config.version },
      args.host,
    )
    const [only] = hosts
    if (server !== null) await this.printLong(showFleet(server, hosts))
    else if (only !== undefined) this.print(showHost(only))
    const found = [...(server?.findings ?? []), ...hosts.flatMap(({ findings }) => findings)]
    process.exitCode = complains(found) ? 1 : 0
    return examinationData(server, hosts)
  }
}
