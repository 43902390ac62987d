import { duplicateReason, revokedReason, shownStatus } from '../hosts/host-status.ts'
import { stoppedReason } from '../protocol/close-codes.ts'
import { span } from '../text/duration.ts'
import { type CheckResult, finding, type HostFacts, isHeard, isLate, secondsSilent } from './finding.ts'
import { linkAdvice } from './link-trouble.ts'

/** Seconds after its start in which an agent may still be about to link. */
const startTime = 15

const askThere = 'is HOST up? then on HOST: `rsm agent status`'

/** An agent that announced its stop: explains the silence and the missing link. */
function stopped({ host }: HostFacts): CheckResult {
  const fault = host.agent?.linkFault
  if (fault?.startsWith(stoppedReason) !== true) return null
  return [
    finding('stopped', 'error', `${fault}: no script can run there`, 'start it again on HOST', stoppedReason),
  ]
}

/** Checks that an agent has joined, is still allowed, and sends heartbeats. */
export function checkHeartbeats(facts: HostFacts): CheckResult {
  const { host, url, server } = facts
  if (host.agent === null)
    return [
      finding(
        'never-joined',
        'error',
        'no agent has ever joined',
        '`rsm hosts join --replace HOST`, and run the line that it prints on HOST',
      ),
    ]
  if (host.statusReason === revokedReason)
    return [
      finding(
        'revoked',
        'error',
        'the agent token was revoked',
        'stop the previous agent on HOST; then: `rsm hosts join --replace HOST`',
      ),
    ]
  const goodbye = stopped(facts)
  if (goodbye !== null) return goodbye
  const silent = secondsSilent(facts)
  if (host.status === 'OFFLINE') {
    const since = silent === null ? 'since the server started' : `for ${span(silent)}`
    const cause = host.agent.connected
      ? 'the link is still up: the agent is suspended or hangs'
      : `host or agent is down, or does not reach ${url}`
    const ask = host.agent.connected ? 'on HOST: `rsm agent status`' : askThere
    return [finding('silent', 'error', `no heartbeat ${since}: ${cause}`, ask, `no heartbeat: ${cause}`)]
  }
  if (silent !== null && isLate(facts)) {
    const every = `no heartbeat for ${span(silent)}, expected every ${server?.heartbeatInterval} s`
    if (host.agent.connected || host.agent.onDemand === true)
      return [finding('late', 'warning', `${every}: OFFLINE soon`, askThere, 'the heartbeat is late')]
    const cause = `no link either: host or agent is down, or does not reach ${url}`
    return [
      finding('late', 'error', `${every}, and ${cause}`, askThere, `the heartbeat is late, and ${cause}`),
    ]
  }
  return silent === null ? 'heartbeats arrive' : `heard ${span(silent)} ago`
}

export function checkLink(facts: HostFacts): CheckResult {
  const { agent } = facts.host
  if (agent === null || !isHeard(facts) || stopped(facts) !== null) return null
  // The state of the link is unknown while heartbeats are late: checkHeartbeats reports that.
  if (!agent.connected && isLate(facts)) return null
  if (agent.connected) return 'linked'
  if (agent.onDemand === true && agent.linkFault === null) return 'links when there is work (--on-demand)'
  const title = 'heartbeats arrive, but there is no link, so no script can run there'
  if (agent.linkFault !== null)
    return [
      finding(
        'link-down',
        'error',
        `${title}: ${agent.linkFault}`,
        linkAdvice(agent.linkFault, facts.url),
        title,
      ),
    ]
  const silent = secondsSilent(facts) ?? 0
  if (agent.uptime !== null && agent.uptime + silent < startTime)
    return [
      finding(
        'link-down',
        'note',
        'the agent has just started and is not linked yet',
        'check again in a few seconds',
      ),
    ]
  // At its last heartbeat the agent still had its link.
  if (agent.onDemand === false)
    return [
      finding(
        'link-down',
        'error',
        `the link was lost after the last heartbeat, ${span(silent)} ago: the agent is reconnecting or has exited`,
        'check again in a few seconds; then on HOST: `rsm agent status`',
        'the link was lost after the last heartbeat: the agent is reconnecting or has exited',
      ),
    ]
  return [
    finding(
      'link-down',
      'warning',
      'heartbeats arrive, but there is no link: the agent links on demand, or a proxy blocks WebSockets',
      'on HOST: `rsm agent status`; a proxy in between must forward Upgrade for /ws/',
    ),
  ]
}

/** Checks that no other agent has the same identity (contract §6). */
export function checkIdentity(facts: HostFacts): CheckResult {
  const { host } = facts
  if (host.agent === null) return null
  if (host.statusReason?.includes(duplicateReason) !== true)
    return isHeard(facts) ? 'no other agent has this identity' : null
  return [
    finding(
      'duplicate',
      'error',
      `${duplicateReason} (a cloned disk?): scripts may run on either`,
      'stop the agent on the copy, empty its data directory, and join it as another host: `rsm hosts join`, and --hostname NAME for its agent',
    ),
  ]
}

/** Advice for the agent's reason, which contains the error code if its data directory cannot be read. */
function healthAdvice(reason: string): string {
  const [, code] = /can ?not be read \((E[A-Z0-9]+)\)/.exec(reason) ?? []
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return 'the directory was removed: on HOST stop the agent, then enroll it again with `rsm hosts join --replace HOST`'
    case 'EACCES':
    case 'EPERM':
      return "on HOST: make the directory accessible to the agent's user again (`namei -l` shows owners and modes)"
    case 'EROFS':
    case 'EIO':
      return diskAdvice
    case undefined:
    case 'ENOSPC':
    case 'EDQUOT':
      return reason.includes(' read-only')
        ? diskAdvice
        : "free up space on the disk of the agent's data directory: it must hold output of scripts"
    default:
      return 'on HOST: look at the file system of the directory (`findmnt`, `dmesg | tail -50`), then restart the agent'
  }
}

const diskAdvice =
  'on HOST: `dmesg | tail -50` may show why; check the disk before you mount it read-write again'

/** Checks the agent's own report: the disk of its data directory, and disks that became read-only. */
export function checkHealth(facts: HostFacts): CheckResult {
  const { agent } = facts.host
  if (agent === null || !isHeard(facts) || agent.status === null || stopped(facts) !== null) return null
  if (agent.status === 'HEALTHY')
    return isLate(facts) || shownStatus(facts.host) === 'NO LINK' ? null : 'the agent is healthy'
  const why = agent.statusReason === null ? '' : `: ${agent.statusReason}`
  return [
    finding(
      'degraded',
      agent.status === 'UNHEALTHY' ? 'error' : 'warning',
      `the agent is ${agent.status}${why}`,
      healthAdvice(agent.statusReason ?? ''),
      `the agent is ${agent.status}`,
    ),
  ]
}

export function checkWork({ host, waiting }: HostFacts): CheckResult {
  if (waiting === null || waiting === 0 || host.agent?.connected === true) return null
  return [
    finding(
      'waiting',
      'note',
      `${waiting} ${waiting === 1 ? 'task waits' : 'tasks wait'} to run there`,
      '`rsm tasks list --status RUNNING -w HOST`',
      'tasks wait to run there',
    ),
  ]
}
