import { duplicateReason, revokedReason, shownStatus } from '../hosts/host-status.ts'
import { stoppedReason } from '../protocol/close-codes.ts'
import { type CheckResult, finding, type HostFacts, isHeard, isLate, secondsSilent } from './finding.ts'
import { linkAdvice } from './link-trouble.ts'
import { span } from './words.ts'

/** An agent that runs for less may still be about to link, seconds. */
const startTime = 15

const askThere = 'is HOST up? then on HOST: `rsm agent status`'

/** The finding of an agent that said goodbye: silence and a missing link follow from it. */
function stopped({ host }: HostFacts): CheckResult {
  const fault = host.agent?.linkFault
  if (fault?.startsWith(stoppedReason) !== true) return null
  return [
    finding('stopped', 'error', `${fault}: no script gets there`, 'start it again on HOST', stoppedReason),
  ]
}

/** Whether an agent has joined, is still allowed, and heartbeats. */
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
      ? 'the link still stands: the agent is stopped or hangs'
      : `host or agent is down, or does not reach ${url}`
    const ask = host.agent.connected ? 'on HOST: `rsm agent status`' : askThere
    return [finding('silent', 'error', `no heartbeat ${since}: ${cause}`, ask, `no heartbeat: ${cause}`)]
  }
  if (silent !== null && isLate(facts)) {
    const every = `no heartbeat for ${span(silent)}, they come every ${server?.heartbeatInterval} s`
    if (host.agent.connected || host.agent.onDemand === true)
      return [finding('late', 'warning', `${every}: OFFLINE soon`, askThere, 'the heartbeat is late')]
    const cause = `no link either: host or agent is down, or does not reach ${url}`
    return [
      finding('late', 'error', `${every}, and ${cause}`, askThere, `the heartbeat is late, and ${cause}`),
    ]
  }
  return silent === null ? 'heartbeats come' : `heard ${span(silent)} ago`
}

/** Whether there is a link over which a script can be sent. */
export function checkLink(facts: HostFacts): CheckResult {
  const { agent } = facts.host
  if (agent === null || !isHeard(facts) || stopped(facts) !== null) return null
  // Who is not heard has told nothing of its link since: one cause is told once.
  if (!agent.connected && isLate(facts)) return null
  if (agent.connected) return 'linked'
  if (agent.onDemand === true && agent.linkFault === null) return 'links when there is work (--on-demand)'
  const title = 'heartbeats come, but there is no link, so no script gets there'
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
        'ask again in a few seconds',
      ),
    ]
  // By its last heartbeat the agent had its link.
  if (agent.onDemand === false)
    return [
      finding(
        'link-down',
        'error',
        `the link is gone since the last heartbeat, ${span(silent)} ago: the agent links again, or has ended`,
        'ask again in a few seconds; then on HOST: `rsm agent status`',
        'the link is gone since the last heartbeat: the agent links again, or has ended',
      ),
    ]
  return [
    finding(
      'link-down',
      'warning',
      'heartbeats come, but there is no link: the agent links on demand, or no WebSocket gets through',
      'on HOST: `rsm agent status`; a proxy in between has to pass on Upgrade for /ws/',
    ),
  ]
}

/** Whether the agent's identity is its own (contract §6). */
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

/** By the agent's reason, which names the error code where its data directory cannot be read. */
function healthAdvice(reason: string): string {
  const [, code] = /can ?not be read \((E[A-Z0-9]+)\)/.exec(reason) ?? []
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return 'the directory was removed: on HOST stop the agent, then enroll it again with `rsm hosts join --replace HOST`'
    case 'EACCES':
    case 'EPERM':
      return 'on HOST: give the directory, and the way to it, back to the user of the agent (`namei -l` shows each owner and mode)'
    case 'EROFS':
    case 'EIO':
      return diskAdvice
    case undefined:
    case 'ENOSPC':
    case 'EDQUOT':
      return reason.includes(' read-only')
        ? diskAdvice
        : "make room on the disk of the agent's data directory: output of scripts waits there"
    default:
      return 'on HOST: look at the file system of the directory (`findmnt`, `dmesg | tail -50`), then restart the agent'
  }
}

const diskAdvice =
  'on HOST: `dmesg | tail -50` may say why; check the disk before you mount it read-write again'

/** What the agent says of itself: its data directory's disk, and disks that have become read-only. */
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

/** Tasks that wait for it, where it can't be reached. */
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
