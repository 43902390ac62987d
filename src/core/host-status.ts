import type { AgentStatus, HostStatus, Metrics } from './protocol/http/hosts.ts'

/** A host's status and, unless it is ONLINE, why (contract §3 "Hosts and their status"). */
export interface HostStanding {
  readonly status: HostStatus
  readonly reason: string | null
}

/** What the server knows of a host when it judges its status. */
export interface HostSigns {
  /** Whether an agent has ever registered for it. */
  readonly registered: boolean
  /** Whether the token of its agent was revoked, and no agent has registered since. */
  readonly revoked?: boolean
  /**
   * Since the last heartbeat or registration, or since the server's start where that is later: after a restart the
   * count starts anew. By the monotonic clock.
   */
  readonly secondsSilent: number
  /** Since the last heartbeat, over restarts, by the server's own wall clock: only said, never judged by. */
  readonly secondsSinceHeartbeat?: number | null
  /** Seconds. */
  readonly heartbeatInterval: number
  /** Of the last heartbeat since the server's start; a registration counts as HEALTHY; null when there was neither. */
  readonly agentStatus: AgentStatus | null
  /** Why it is not HEALTHY, in the agent's words. */
  readonly agentReason?: string | null
  readonly metrics: Metrics | null
  /** What stood before: it makes a warning last until it clears, and outlives a restart of the server. */
  readonly last: HostStanding | null
  /** Two agents have been found to use one identity (contract §6). */
  readonly duplicateIdentity: boolean
  /** Percent at which a measure warns, default 90. */
  readonly warnPercent?: number
  /** Percent below which a warning clears, default 85. */
  readonly clearPercent?: number
}

/** Heartbeat intervals without a heartbeat that make a host OFFLINE (seed). */
export const silentIntervals = 3

/** Reasons that `rsm hosts doctor` tells apart by their words. */
export const revokedReason = 'its agent token was revoked'
export const duplicateReason = 'two agents use the identity of this host'

/** How many measures a reason names: the fullest. */
const maxMeasures = 3

export interface Measure {
  readonly name: string
  readonly percent: number
}

function measuresOf(metrics: Metrics | null): Measure[] {
  if (!metrics) return []
  return [
    { name: 'cpu', percent: metrics.cpu.usagePercent },
    { name: 'memory', percent: metrics.memory.usagePercent },
    ...metrics.disk.map((disk) => ({ name: `disk ${disk.mountPoint}`, percent: disk.usagePercent })),
  ]
}

/**
 * The measures that warn, the fullest first: at `warnPercent`, or above `clearPercent` where a warning stood and none is
 * as high any more.
 */
export function highMeasures(
  metrics: Metrics | null,
  hasWarned: boolean,
  { warnPercent = 90, clearPercent = 85 }: Pick<HostSigns, 'warnPercent' | 'clearPercent'> = {},
): Measure[] {
  const measures = measuresOf(metrics).sort((a, b) => b.percent - a.percent)
  const high = measures.filter(({ percent }) => percent >= warnPercent)
  if (high.length > 0 || !hasWarned) return high
  return measures.filter(({ percent }) => percent >= clearPercent)
}

/** Rounded down: 89.6 % must not read as the 90 % at which it would warn. */
const describe = ({ name, percent }: Measure): string => `${name} ${Math.floor(percent)} %`

function warnings(signs: HostSigns): string[] {
  const { agentStatus, agentReason = null } = signs
  const reasons: string[] = []
  if (signs.duplicateIdentity) reasons.push(duplicateReason)
  if (agentStatus !== null && agentStatus !== 'HEALTHY')
    reasons.push(`the agent reports ${agentStatus}${agentReason === null ? '' : `: ${agentReason}`}`)
  const high = highMeasures(signs.metrics, signs.last?.status === 'WARNING', signs)
  reasons.push(...high.slice(0, maxMeasures).map((measure) => describe(measure)))
  if (high.length > maxMeasures) reasons.push(`${high.length - maxMeasures} more`)
  return reasons
}

/** What a reason warns of, without the percentages, which move with every report and bring the fullest to the front. */
function causes({ reason }: HostStanding): string {
  return (reason ?? '')
    .replace(/(?<!\d)\d+ %/g, '')
    .split(', ')
    .sort()
    .join(', ')
}

/** Whether who has heard of one standing need not hear of the other: the status is the same, and what it warns of. */
export function tellsTheSame(one: HostStanding, other: HostStanding): boolean {
  if (one.status !== other.status) return false
  return one.status !== 'WARNING' || one.reason === other.reason || causes(one) === causes(other)
}

const silenceWords = 'no heartbeat for'

function silence(seconds: number): HostStanding {
  return { status: 'OFFLINE', reason: `${silenceWords} ${Math.floor(seconds)} s` }
}

/** What was OFFLINE before a restart has been silent for longer than the server has run since. */
function stillOffline(last: HostStanding, { secondsSilent, secondsSinceHeartbeat }: HostSigns): HostStanding {
  const isSilence = last.reason?.startsWith(silenceWords) === true
  if (!isSilence || secondsSinceHeartbeat == null) return last
  return silence(Math.max(secondsSilent, secondsSinceHeartbeat))
}

/** The status of a host from all that is known of it; a decision without a clock (contract §3). */
export function hostStatus(signs: HostSigns): HostStanding {
  if (signs.revoked) return { status: 'OFFLINE', reason: revokedReason }
  if (!signs.registered) return { status: 'OFFLINE', reason: 'never heard' }
  if (signs.secondsSilent >= silentIntervals * signs.heartbeatInterval) {
    if (signs.agentStatus === null && signs.last?.status === 'OFFLINE') return stillOffline(signs.last, signs)
    const before = signs.agentStatus === null ? (signs.secondsSinceHeartbeat ?? 0) : 0
    return silence(Math.max(signs.secondsSilent, before))
  }
  if (signs.agentStatus === null && !signs.duplicateIdentity) {
    if (signs.last?.status === 'OFFLINE') return stillOffline(signs.last, signs)
    return signs.last ?? { status: 'OFFLINE', reason: 'not heard since the server started' }
  }
  const reasons = warnings(signs)
  if (reasons.length > 0) return { status: 'WARNING', reason: reasons.join(', ') }
  return { status: 'ONLINE', reason: null }
}
