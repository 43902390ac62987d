import { BaseCommand } from '../../cli/command/base-command.ts'
import { control } from '../../cli/command/control.ts'
import { dataDirectory, serverDirectoryFlag } from '../../cli/flags/service.ts'
import { counted } from '../../cli/text/amounts.ts'
import { showTime } from '../../cli/text/time.ts'
import type { Readiness } from '../../client/services/requests.ts'
import { doubtSentence } from '../../core/clock/agreed-time.ts'
import { RsmError } from '../../core/errors.ts'
import type { Server, ServerStatus as Status } from '../../core/protocol/http/server.ts'

const restoreText = ({ executions, tasks, reason }: NonNullable<Status['restore']>) =>
  `holds ${counted(executions, 'execution')} of ${counted(tasks, 'task')}: ${reason}`

/** Adds the response of `/api/ready`, which needs no token and therefore no store. */
function withReadiness(cause: RsmError, { notReady, server }: Readiness): RsmError {
  if (notReady === null) return cause
  const [name, lease] =
    server === null ? ['the server', ''] : [`server ${server.name}`, ` (lease: ${server.leaseSeconds} s)`]
  return new RsmError('unavailable', `${name} does not accept work: ${notReady}${lease}`, {
    hint: 'for more, run rsm server status --data-dir DIR on its machine',
    cause,
  })
}

export default class ServerStatus extends BaseCommand {
  static override summary = 'Show the state of the server on this machine'
  static override description =
    "Also shows the servers that share its store. Run it as the server's user or root; it needs no token. Exit " +
    'code 4: no server is running. With --url or --context it asks that server over the network, with your ' +
    'token, and shows only what every user may see.'
  static override examples = [
    '$ rsm server status',
    '$ rsm server status --json',
    '$ rsm server status --url https://rsm.example.org',
  ]
  static override flags = { 'data-dir': serverDirectoryFlag }

  async run() {
    const { flags } = await this.parse(ServerStatus)
    if (flags.url !== undefined || flags.context !== undefined) return this.#overNetwork(flags.utc)
    const status = await control(dataDirectory('server', flags['data-dir']), 'status', {})
    if (this.globals.json) return status
    const { storeAddress, storeFault, servers = [] } = status
    await this.#show(flags.utc, status, servers, {
      pid: status.pid,
      store: storeAddress ?? null,
      'store fault': storeFault ?? null,
      hosts: status.hosts,
      'running tasks': status.runningTasks,
      'open terminals': status.terminals,
      writes: status.readOnly ?? 'accepted',
      'audit log': status.auditRefused ?? 'accepts entries',
      'log level': status.logLevel,
    })
    return status
  }

  async #overNetwork(utc: boolean) {
    const client = await this.client()
    const status = await client.server.status().catch(async (error: unknown) => {
      if (!(error instanceof RsmError) || error.code !== 'unavailable') throw error
      throw withReadiness(error, await client.server.readiness())
    })
    if (status === null)
      throw new RsmError('not_found', `the server at ${this.serverName()} is too old to report its state`)
    const servers = (await client.server.servers()) ?? []
    if (!this.globals.json) await this.#show(utc, status, servers, {})
    return { ...status, servers }
  }

  async #show(
    utc: boolean,
    { version, startedAt, serverTime, restore, clock }: Status,
    servers: readonly Server[],
    rest: Readonly<Record<string, string | number | null>>,
  ): Promise<void> {
    const { renderFields, renderTable } = await import('../../cli/text/table.ts')
    const { serverColumns } = await import('../../cli/views/servers.ts')
    this.print(
      renderFields({
        version,
        started: showTime(startedAt, utc),
        time: showTime(serverTime, utc),
        ...rest,
        restore: restore === null ? null : restoreText(restore),
        clock: clock === null ? null : doubtSentence(clock),
      }),
    )
    // Only servers of a shared store have a lease.
    if (servers.some(({ leaseUntil }) => leaseUntil !== null))
      this.print(`\n${renderTable(servers, serverColumns(utc))}`)
  }
}
