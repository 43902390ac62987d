import type { HelloFacts } from '../protocol/http/host-agent.ts'
import { compareVersions, skewAdvice, skewReason } from '../release.ts'
import { limitNames, limitWords } from '../tasks/limits.ts'
import { type CheckResult, finding, type HostFacts } from './finding.ts'
import { clockWords } from './words.ts'

/** Clocks that differ by less are told nothing of: heartbeats take their time. */
export const clockTolerance = 10

const asService =
  'run the agent as root under systemd with Delegate=yes and DelegateSubgroup=agent (rsm agent install writes such a unit)'

/** How far the clock of the host is ahead of the server's. Nothing of ours hangs on it; TLS, scripts and logs there do. */
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

/** The release of the agent beside the server's. */
export function checkVersion({ host, server }: HostFacts): CheckResult {
  if (host.agent === null || server === null) return null
  const { agentVersion } = host.agent
  const found = compareVersions(agentVersion, server.version)
  if (found === null) return null
  if (!found.isOlder && !found.isNewer) return `the agent is ${agentVersion}, as the server`
  const title = `the agent is ${found.isOlder ? 'older' : 'newer'} than the server`
  const skew = skewReason(agentVersion, server.version)
  const both = skew ?? `the agent is ${agentVersion}, the server ${server.version}`
  const advice = skewAdvice(found)
  return [
    finding('version', skew ? 'warning' : 'note', both, advice, skew ? `${title}: too far apart` : title),
  ]
}

/** As an agent says it; absent where a server is too old to tell it. */
type Reported = Partial<HelloFacts>

/** Whether the end of a script reaches all that it started. */
export function checkContainment({ containment = null }: Reported): CheckResult {
  if (containment === null) return null
  if (containment !== 'process-group') return `scripts are held by a ${containment}`
  return [
    finding(
      'containment',
      'note',
      'no cgroup: what a script daemonises survives a timeout and a cancel',
      asService,
    ),
  ]
}

/** Whether a script can do whatever it likes there. */
export function isUnbounded({ runsAsRoot, sandbox }: Reported): boolean {
  return runsAsRoot === true && sandbox === 'none'
}

/** Who scripts run as, and in what. */
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

/** Which limits of a task can be kept there. */
export function checkLimits({ enforces = null }: Reported): CheckResult {
  if (enforces === null) return null
  const missing = limitNames.filter((name) => !enforces.includes(name)).map((name) => limitWords[name])
  if (missing.length === 0) return 'scripts can be limited'
  return [
    finding('limits', 'note', `scripts with --limit ${missing.join(', ')} are refused there`, asService),
  ]
}

/** Whether `rsm terminal` works there. */
export function checkTerminals({ host }: HostFacts): CheckResult {
  const terminal = host.agent?.terminal ?? null
  if (terminal === null) return null
  if (terminal) return 'terminals can be opened'
  const why = host.agent?.terminalLack ?? null
  const title = 'no terminal can be opened there'
  if (why !== null)
    return [finding('terminal', 'note', `${title}: ${why}`, '`rsm exec` works without', title)]
  return [finding('terminal', 'note', title, 'on HOST: `rsm agent status` says why')]
}
