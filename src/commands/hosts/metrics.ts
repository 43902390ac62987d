import { string as text } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { given, ifGiven, integer, needed } from '../../cli/flags/checks.ts'
import { parseDuration, parseTime } from '../../cli/input/values.ts'
import { findHost } from '../../cli/names/names.ts'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import { showTime } from '../../cli/text/time.ts'
import type { Host, HostMetrics, HostMetricsQuery } from '../../core/protocol/http/hosts.ts'

/** The server's maximum, so that minima and maxima are those of single reports for as long as possible. */
const pointsForPeople = 2000

function advice({ agent, hostname, status }: Host): string {
  if (agent === null) return `no agent has joined it: rsm hosts join --replace ${hostname}`
  if (status === 'OFFLINE') return `it is OFFLINE: rsm hosts doctor ${hostname}`
  return 'its agent reports metrics every 60 s by default, and they are kept for 7 days: try again soon, or add --since 7d'
}

export default class HostsMetrics extends BaseCommand {
  static override summary = "Show a host's metrics over time: cpu, load, memory, disks, network"
  static override description =
    'One line per measure: lowest, average, highest and last value, and a graph. Percentages are drawn from 0 to ' +
    '100, others from 0 to the highest value. History is kept for 7 days.'
  static override examples = [
    '$ rsm hosts metrics web1',
    '$ rsm hosts metrics web1 --since 2h',
    "$ rsm hosts metrics web1 --from '2026-11-20 22:00' --to '2026-11-21 06:00'",
    '$ rsm hosts metrics web1 --since 7d --points 168 --json',
  ]
  static override args = { host: needed('hostname, or @id:17') }
  static override flags = {
    since: text({ helpValue: 'TIME', exclusive: ['from'], description: 'how far back (default: 24h)' }),
    from: text({ helpValue: 'WHEN', description: 'start of the period' }),
    to: text({ helpValue: 'WHEN', description: 'end of the period (default: now)' }),
    points: integer({
      min: 1,
      max: 2000,
      helpValue: 'N',
      description: 'average into at most N samples',
    }),
  }

  async run() {
    const { args, flags } = await this.parse(HostsMetrics)
    const ago = (text: string) => new Date(Math.max(0, Date.now() - parseDuration(text) * 1000)).toISOString()
    const moment = (option: 'from' | 'to') =>
      ifGiven(flags[option], (text) => parseTime(`--${option}`, text, flags.utc))
    const query: HostMetricsQuery = given({
      from: ifGiven(flags.since, ago) ?? moment('from'),
      to: moment('to'),
      points: flags.points ?? (flags.json ? undefined : pointsForPeople),
    })
    const client = await this.client()
    const host = await findHost(client, args.host)
    const history = await client.hosts.metrics(host.id, query)
    if (history.samples.length === 0) this.#saidNone(host, history)
    else if (!flags.json) {
      const { renderMetrics } = await import('../../cli/hosts/metrics-view.ts')
      const { hostname } = host
      this.print(
        `${sanitizeLine(hostname)}, ${showTime(history.from, flags.utc)} to ${showTime(history.to, flags.utc)}`,
      )
      this.print(renderMetrics(history))
    }
    return history
  }

  #saidNone(host: Host, { from, to }: HostMetrics): void {
    const range = `${showTime(from, this.globals.utc)} to ${showTime(to, this.globals.utc)}`
    this.notice(`no metrics of ${host.hostname} from ${range}; ${advice(host)}`)
  }
}
