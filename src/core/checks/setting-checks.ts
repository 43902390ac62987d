import type { HelloFacts } from '../protocol/http/hosts.ts'
import { compareVersions, skewAdvice, skewReason } from '../release.ts'
import { limitNames, limitWords } from '../tasks/limits.ts'
import { clockWords } from '../text/duration.ts'
import { type CheckResult, finding, type HostFacts } from './finding.ts'

/** Seconds of clock difference that are ignored, because heartbeats take time. */
export const clockTolerance = 10

const asService =
  'run the agent as root under systemd with Delegate=yes and DelegateSubgroup=agent (rsm agent install writes such a unit)'

/** Checks the host's clock against the server's. rsm does not depend on it; TLS, scripts and logs there do. */
export function checkClock(offset: number | null): CheckResult {
  if (offset === null) return null
  if (Math.abs(offset) < clockTolerance) return 'the clock is right'
  return [
    finding(
      'clock',
      'warning',
      `the clock is ${clockWords(offset)}: times in logs are wrong, certificates may seem expired`,
      'on HOST: `timedatectl set-ntp true`, or start chrony',
      'the clock is wrong',
    ),
  ]
}

export function checkVersion({ host, server }: HostFacts): CheckResult {
  if (host.agent === null || server === null) return null
  const { agentVersion } = host.agent
  const found = compareVersions(agentVersion, server.version)
  if (found === null) return null
  if (!found.isOlder && !found.isNewer) return `the agent is ${agentVersion}, like the server`
  const title = `the agent is ${found.isOlder ? 'older' : 'newer'} than the server`
  const skew = skewReason(agentVersion, server.version)
  const both = skew ?? `the agent is ${agentVersion}, the server ${server.version}`
  const advice = skewAdvice(found)
  return [
    finding('version', skew ? 'warning' : 'note', both, advice, skew ? `${title}: too far apart` : title),
  ]
}

/** As reported by an agent; absent from older servers. */
type Reported = Partial<HelloFacts>

/** Checks that ending a script reaches everything it started. */
export function checkContainment({ containment = null }: Reported): CheckResult {
  if (containment === null) return null
  if (containment !== 'process-group') return `scripts are contained by a ${containment}`
  return [
    finding(
      'containment',
      'note',
      'no cgroup: daemons started by a script survive timeout and cancel',
      asService,
    ),
  ]
}

export function isUnbounded({ runsAsRoot, sandbox }: Reported): boolean {
  return runsAsRoot === true && sandbox === 'none'
}

export function checkUser(reported: Reported): CheckResult {
  const { runAs = null, runsAsRoot = null, sandbox = null } = reported
  if (runAs === null || runsAsRoot === null || sandbox === null) return null
  if (!isUnbounded(reported))
    return `scripts run as ${runAs}${sandbox === 'none' ? '' : ` (sandbox ${sandbox})`}`
  return [
    finding(
      'root',
      'note',
      'scripts run as root without a sandbox: each can do anything there',
      'restart the agent with --run-as USER, or --sandbox strict',
    ),
  ]
}

export function checkLimits({ enforces = null }: Reported): CheckResult {
  if (enforces === null) return null
  const missing = limitNames.filter((name) => !enforces.includes(name)).map((name) => limitWords[name])
  if (missing.length === 0) return 'scripts can be limited'
  return [
    finding('limits', 'note', `scripts with --limit ${missing.join(', ')} are refused there`, asService),
  ]
}

export function checkTerminals({ host }: HostFacts): CheckResult {
  const terminal = host.agent?.terminal ?? null
  if (terminal === null) return null
  if (terminal) return 'terminals can be opened'
  const why = host.agent?.terminalLack ?? null
  const title = 'no terminal can be opened there'
  if (why !== null)
    return [finding('terminal', 'note', `${title}: ${why}`, '`rsm exec` works without one', title)]
  return [finding('terminal', 'note', title, 'on HOST: `rsm agent status` shows why')]
}
