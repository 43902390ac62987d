import { highMeasures, type Measure, shownStatus } from '../hosts/host-status.ts'
import { span } from '../text/duration.ts'
import {
  type CheckResult,
  complains,
  type Finding,
  finding,
  type HostFacts,
  isHeard,
  isLate,
  worstFirst,
} from './finding.ts'
import { checkHealth, checkHeartbeats, checkIdentity, checkLink, checkWork } from './presence-checks.ts'
import {
  checkClock,
  checkContainment,
  checkLimits,
  checkTerminals,
  checkUser,
  checkVersion,
} from './setting-checks.ts'

/** Percent at which a disk counts as full. */
const fullDisk = 98
/** Metrics reports that may be missing before that is reported. */
const missingReports = 3

export interface Examination {
  /** Worst first. */
  readonly findings: readonly Finding[]
  /** A few words for each check that passed. */
  readonly well: readonly string[]
}

const checks: readonly ((facts: HostFacts) => CheckResult)[] = [
  checkHeartbeats,
  checkIdentity,
  checkLink,
  checkHealth,
  checkWork,
]

/** Checks of what the agent reported last, even if it is gone now. */
const settingChecks: readonly ((facts: HostFacts) => CheckResult)[] = [
  checkLoad,
  ({ host }) => checkClock(host.agent?.clockOffsetSeconds ?? null),
  checkVersion,
  ({ host }) => host.agent && checkUser(host.agent),
  ({ host }) => host.agent && checkContainment(host.agent),
  ({ host }) => host.agent && checkLimits(host.agent),
  checkTerminals,
]

/** Defaults for fields that older servers leave out. */
const unsaid = {
  reachable: false,
  linkLostAt: null,
  onDemand: null,
  linkFault: null,
  statusReason: null,
  clockOffsetSeconds: null,
}

/** Finds out from REST API data why a host is unhealthy; in the client, to work with older servers too. */
export function examineHost(given: HostFacts): Examination {
  const facts = withUnsaid(given)
  const isAway = ['NO LINK', 'OFFLINE'].includes(shownStatus(facts.host))
  const found = gather([
    ...checks.map((check) => check(facts)),
    ...settingChecks.map((check) => (isAway ? complaintsOf(check(facts)) : check(facts))),
  ])
  const { status, statusReason } = facts.host
  if (status === 'ONLINE' || complains(found.findings)) return found
  // A newer server may give a reason that this release does not know.
  const other = finding('status', 'warning', statusReason ?? `it is ${status}`, '`rsm hosts show HOST`')
  return { findings: worstFirst([other, ...found.findings]), well: found.well }
}

function withUnsaid(facts: HostFacts): HostFacts {
  const { host } = facts
  return { ...facts, host: { ...host, agent: host.agent && { ...unsaid, ...host.agent } } }
}

/** Drops notes, which explain no fault. */
const complaintsOf = (result: CheckResult): CheckResult =>
  typeof result === 'string' || result === null ? null : result.filter(({ severity }) => severity !== 'note')

export function gather(results: readonly CheckResult[]): Examination {
  const findings = results.flatMap((result) => (result === null || typeof result === 'string' ? [] : result))
  return { findings: worstFirst(findings), well: results.filter((result) => typeof result === 'string') }
}

/** Checks cpu, memory and disks by the last report; nothing for a silent host. */
function checkLoad(facts: HostFacts): CheckResult {
  const { host, server } = facts
  const { metrics, agent } = host
  if (agent === null || !isHeard(facts)) return null
  const interval = server?.metricsInterval
  const age = secondsUnreported(facts)
  if (interval !== undefined && age !== null && age > missingReports * interval + 10)
    return [
      finding(
        'metrics',
        'note',
        `no report of cpu, memory and disks for ${span(age)}`,
        'on HOST: the log of the agent says why (`journalctl -u rsm-agent`)',
        'no report of cpu, memory and disks',
      ),
    ]
  if (metrics === null) return null
  const high = highMeasures(metrics, { status: host.status, reason: host.statusReason })
  if (high.length === 0) return 'cpu, memory and disks have room'
  const mayRun = agent.connected || (agent.onDemand === true && agent.linkFault === null && !isLate(facts))
  return high.map((measure) => findingOf(measure, mayRun))
}

/** Null if unknown: a server forgets reports at its start, and older ones do not say when that was. */
function secondsUnreported({ host, now, server }: HostFacts): number | null {
  const since = (at: string) => Math.max(0, (now - Date.parse(at)) / 1000)
  if (host.metrics !== null) return since(host.metrics.timestamp)
  if (host.agent === null || server?.startedAt === undefined) return null
  return Math.min(since(host.agent.registeredAt), since(server.startedAt))
}

function findingOf(measure: Measure, mayRun: boolean): Finding {
  const { name, percent } = measure
  const isDisk = name !== 'cpu' && name !== 'memory'
  const code = isDisk ? 'disk' : name === 'cpu' ? 'cpu' : 'memory'
  const severity = isDisk && percent >= fullDisk ? 'error' : 'warning'
  const state = name.startsWith('disk ') ? 'full' : 'in use'
  const message = `${name} ${Math.floor(percent)} % ${state}`
  const command = commandOn(measure)
  const advice = mayRun ? `\`rsm exec -w HOST -- '${command}'\`` : `on HOST: \`${command}\``
  return finding(code, severity, message, advice, `${name} nearly all ${state}`)
}

/** Command that shows the biggest consumers. A path that would need quoting is replaced by `/`. */
function commandOn({ name }: Measure): string {
  if (name === 'cpu') return 'ps aux --sort=-%cpu | head'
  if (name === 'memory') return 'ps aux --sort=-rss | head'
  const mount = name.slice(name.indexOf(' ') + 1)
  const path = /^\/[\w./-]*$/.test(mount) ? mount : '/'
  if (name.startsWith('inodes ')) return `du --inodes -x -d2 ${path} | sort -n | tail`
  return `du -xh -d2 ${path} | sort -h | tail`
}
