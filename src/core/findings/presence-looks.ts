import { duplicateReason, revokedReason } from '../host-status.ts'
import { finding, type Look } from './finding.ts'
import { type HostFacts, isHeard, secondsSilent } from './host-facts.ts'
import { linkAdvice } from './link-trouble.ts'
import { span } from './words.ts'

/** An agent that runs for less may still be about to link, seconds. */
const startTime = 15

/** A heartbeat that is so many intervals late is worth a word before the host is OFFLINE. */
const lateFactor = 1.5

const askThere = 'is HOST up? then on HOST: rsm agent status'

/** Whether an agent has joined, is still allowed, and heartbeats. */
export function lookAtHeartbeats(facts: HostFacts): Look {
  const { host, url, server } = facts
  if (host.agent === null)
    return [
      finding(
        'never-joined',
        'error',
        'no agent has ever joined it',
        'rsm hosts join --replace HOST, and run the line that it prints on HOST',
      ),
    ]
  if (host.statusReason === revokedReason)
    return [
      finding(
        'revoked',
        'error',
        revokedReason,
        'stop the former agent on HOST; then: rsm hosts join --replace HOST',
      ),
    ]
  const silent = secondsSilent(facts)
  if (host.status === 'OFFLINE') {
    const since = silent === null ? 'since the server started' : `for ${span(silent)}`
    const cause = host.agent.connected
      ? 'its link still stands: the agent is stopped or hangs'
      : `the host or its agent is down, or does not reach ${url}`
    const ask = host.agent.connected ? 'on HOST: rsm agent status' : askThere
    return [finding('silent', 'error', `no heartbeat ${since}: ${cause}`, ask, `no heartbeat: ${cause}`)]
  }
  const interval = server?.heartbeatInterval
  if (silent !== null && interval !== undefined && silent > lateFactor * interval + 1)
    return [
      finding(
        'late',
        'warning',
        `no heartbeat for ${span(silent)}, they come every ${interval} s: it will be OFFLINE soon`,
        askThere,
        'its heartbeat is late',
      ),
    ]
  return silent === null ? 'heartbeats come' : `heard ${span(silent)} ago`
}

/** Whether there is a link over which a script can be sent. */
export function lookAtLink(facts: HostFacts): Look {
  const { agent } = facts.host
  if (agent === null || !isHeard(facts)) return null
  if (agent.connected) return 'linked'
  if (agent.onDemand === true && agent.linkFault === null) return 'links when there is work (--on-demand)'
  const title = 'heartbeats come, but it has no link, so no script gets there'
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
  if (agent.uptime !== null && agent.uptime < startTime)
    return [
      finding(
        'link-down',
        'note',
        'its agent has just started and is not linked yet',
        'ask again in a few seconds',
      ),
    ]
  if (agent.onDemand === false) return [finding('link-down', 'error', title, 'on HOST: rsm agent status')]
  return [
    finding(
      'link-down',
      'warning',
      'heartbeats come, but it has no link: it links on demand, or no WebSocket gets through',
      'on HOST: rsm agent status; a proxy in between has to pass on Upgrade for /ws/',
    ),
  ]
}

/** Whether the agent's identity is its own (contract §6). */
export function lookAtIdentity(facts: HostFacts): Look {
  const { host } = facts
  if (host.agent === null) return null
  if (host.statusReason?.includes(duplicateReason) !== true)
    return isHeard(facts) ? 'no other agent has its identity' : null
  return [
    finding(
      'duplicate',
      'error',
      `${duplicateReason} (a cloned disk?): scripts may run on either`,
      'stop the agent on the copy, empty its data directory, and join it as a host of its own: rsm hosts join --hostname NAME',
    ),
  ]
}

/** What the agent says of itself: its data directory's disk. */
export function lookAtHealth(facts: HostFacts): Look {
  const { agent } = facts.host
  if (agent === null || !isHeard(facts) || agent.status === null) return null
  if (agent.status === 'HEALTHY') return 'its agent is healthy'
  const why = agent.statusReason === null ? '' : `: ${agent.statusReason}`
  return [
    finding(
      'degraded',
      agent.status === 'UNHEALTHY' ? 'error' : 'warning',
      `its agent is ${agent.status}${why}`,
      "make room on the disk of the agent's data directory: output of scripts waits there",
      `its agent is ${agent.status}`,
    ),
  ]
}

/** Tasks that wait for it, where it can't be reached. */
export function lookAtWork({ host, waiting }: HostFacts): Look {
  if (waiting === null || waiting === 0 || host.agent?.connected === true) return null
  return [
    finding(
      'waiting',
      'note',
      `${waiting} ${waiting === 1 ? 'task waits' : 'tasks wait'} for it`,
      'rsm tasks list --status RUNNING -w HOST',
      'tasks wait for it',
    ),
  ]
}
