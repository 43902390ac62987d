import { span } from '../checks/words.ts'
import { stoppedReason } from '../protocol/close-codes.ts'
import type { Host } from '../protocol/http/hosts.ts'
import type { AgentStatus, HostStatus, Metrics } from './host.ts'

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
  /** The measures that warn, the fullest first. */
  readonly high: readonly Measure[]
  /** What stood before: it outlives a restart of the server. */
  readonly last: HostStanding | null
  /** Why its agent is of a release too far from the server's; null where it is not. */
  readonly skew?: string | null
  /** Two agents have been found to use one identity (contract §6). */
  readonly duplicateIdentity: boolean
}

/** Heartbeat intervals without a heartbeat that make a host OFFLINE (contract §3). */
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
    ...metrics.disk.flatMap(({ mountPoint, usagePercent, inodesPercent }) => [
      { name: `disk ${mountPoint}`, percent: usagePercent },
      ...(inodesPercent === undefined ? [] : [{ name: `inodes ${mountPoint}`, percent: inodesPercent }]),
    ]),
  ]
}

/** Percent at which a measure warns, and below which its warning clears. */
const warnPercent = 90
const clearPercent = 85

/** So long cpu and memory have to be high until they warn, seconds, where nobody says otherwise (contract §3). */
export const defaultWarnAfter = 600

const isDisk = ({ name }: Measure): boolean => /^(disk|inodes) /.test(name)

/** What the reports of a host have come to. */
export interface Load {
  /** The names of what warns. */
  readonly warns: readonly string[]
  /** Since when cpu or memory has been high in every report, monotonic milliseconds. */
  readonly highSince: Readonly<Record<string, number>>
}

export const noLoad: Load = { warns: [], highSince: {} }

/**
 * What a report makes of the load before it: a disk warns at once, cpu and memory once every report of `warnAfter`
 * seconds was high; a warning lasts until it clears. `now` is monotonic, in milliseconds.
 */
export function nextLoad(last: Load, metrics: Metrics, now: number, warnAfter = defaultWarnAfter): Load {
  const warns: string[] = []
  const highSince: Record<string, number> = {}
  for (const measure of measuresOf(metrics)) {
    const { name, percent } = measure
    const hasWarned = last.warns.includes(name)
    if (percent >= warnPercent) {
      if (!isDisk(measure)) highSince[name] = last.highSince[name] ?? now
      if (hasWarned || now - (highSince[name] ?? now) >= (isDisk(measure) ? 0 : warnAfter * 1000))
        warns.push(name)
    } else if (hasWarned && percent >= clearPercent) warns.push(name)
  }
  return warns.length === 0 && Object.keys(highSince).length === 0 ? noLoad : { warns, highSince }
}

/** The measures of a report that are named, the fullest first. */
export function measuresNamed(metrics: Metrics | null, names: readonly string[]): Measure[] {
  return measuresOf(metrics)
    .filter(({ name }) => names.includes(name))
    .sort((a, b) => b.percent - a.percent)
}

/**
 * The measures that are worth a word, the fullest first: disks by themselves, cpu and memory where the host's reason
 * names them, as they are high for a moment on every busy host.
 */
export function highMeasures(metrics: Metrics | null, { status, reason }: HostStanding): Measure[] {
  const least = status === 'WARNING' ? clearPercent : warnPercent
  const isNamed = ({ name }: Measure) =>
    reason !== null && (reason.includes(`${name} `) || / \d+ more\b/.test(reason))
  const measures = measuresOf(metrics).filter((measure) => isDisk(measure) || isNamed(measure))
  const high = measures.filter(({ percent }) => percent >= warnPercent)
  const shown = high.length > 0 ? high : measures.filter(({ percent }) => percent >= least)
  return shown.sort((a, b) => b.percent - a.percent)
}

/** Rounded down: 89.6 % must not read as the 90 % at which it would warn. */
const describe = ({ name, percent }: Measure): string => `${name} ${Math.floor(percent)} %`

function warnings(signs: HostSigns): string[] {
  const { agentStatus, agentReason = null } = signs
  const reasons: string[] = []
  if (signs.duplicateIdentity) reasons.push(duplicateReason)
  if (signs.skew) reasons.push(signs.skew)
  if (agentStatus !== null && agentStatus !== 'HEALTHY')
    reasons.push(`the agent reports ${agentStatus}${agentReason === null ? '' : `: ${agentReason}`}`)
  const { high } = signs
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
export function isSameStanding(one: HostStanding, other: HostStanding): boolean {
  if (one.status !== other.status) return false
  return one.status !== 'WARNING' || one.reason === other.reason || causes(one) === causes(other)
}

const silenceWords = 'no heartbeat for'

function silence(seconds: number): HostStanding {
  return { status: 'OFFLINE', reason: `${silenceWords} ${span(seconds)}` }
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

/** What is known of how a host is linked; with `HostSigns` it tells whether something can be run there. */
export interface LinkSigns {
  readonly connected: boolean
  /** Whether its agent has ever linked over `rsm.1`: others can be reached without the server seeing a link. */
  readonly hasLinked: boolean
  readonly onDemand: boolean
  /** Since the link was lost. */
  readonly secondsUnlinked: number
  /** Why there is no link, where that is known. */
  readonly fault: string | null
}

/** Heartbeat intervals for which a host without a link of its own counts as reachable. */
export const reachIntervals = 2

/** Whether what is sent to a host gets there (contract §3 "Reachable"); its status is what it says, not how it is. */
export function isReachable(
  { connected, hasLinked, onDemand }: LinkSigns,
  {
    status,
    secondsSilent,
    heartbeatInterval,
  }: Pick<HostSigns, 'secondsSilent' | 'heartbeatInterval'> & HostStanding,
): boolean {
  if (connected) return true
  return (
    status !== 'OFFLINE' && (onDemand || !hasLinked) && secondsSilent < reachIntervals * heartbeatInterval
  )
}

/** Whether a script would get to a host, as its server shows it; older servers say only whether it is heard. */
export function canBeReached({ status, agent }: Pick<Host, 'status' | 'agent'>): boolean {
  const said: boolean | undefined = agent?.reachable
  return said ?? status !== 'OFFLINE'
}

/** The status of a host for people; NO LINK: its agent has lost a link that it should have (contract §3). */
export const shownStatuses = ['ONLINE', 'WARNING', 'NO LINK', 'OFFLINE'] as const
export type ShownStatus = (typeof shownStatuses)[number]

/** A shown status in one word, as selectors, flags and metrics have it: `NO_LINK`. */
export const statusWord = (status: ShownStatus): string => status.replace(' ', '_')
/** Status words as flags take them. */
export const statusWords = shownStatuses.map(statusWord)

/** Shows a host as the REST API gives it; hosts of older servers, which do not say what they reach, keep their status. */
export function shownStatus(host: Pick<Host, 'status' | 'agent'>): ShownStatus {
  const { status, agent } = host
  const lacksLink = !canBeReached(host) && agent?.onDemand !== true && agent?.linkLostAt !== null
  return status !== 'OFFLINE' && lacksLink ? 'NO LINK' : status
}

/** Whether a link was closed by an agent that was stopped in order. */
export const wasStopped = (fault: string | null | undefined): boolean =>
  fault?.startsWith(stoppedReason) === true

/** Why a host has no link, without the moment: ` (the agent was stopped)`; nothing where it is not known. */
export function faultInBrackets(fault: string | null | undefined): string {
  if (fault === null || fault === undefined) return ''
  return ` (${wasStopped(fault) ? stoppedReason : fault})`
}

/** Whether an agent ought to have a link and has none. */
export const lacksLink = ({ connected, hasLinked, onDemand }: Omit<LinkSigns, 'secondsUnlinked' | 'fault'>) =>
  !connected && hasLinked && !onDemand

export const stoppedAgo = (seconds: number): string =>
  `its agent was stopped ${span(Math.max(0, seconds))} ago`

/** The reason of a host whose agent lacks its link: `no link for 12 s (HTTP 502)`, `its agent was stopped 12 s ago`. */
export function linkReason(signs: LinkSigns): string | null {
  if (!lacksLink(signs)) return null
  if (wasStopped(signs.fault)) return stoppedAgo(signs.secondsUnlinked)
  return `no link for ${span(Math.max(0, signs.secondsUnlinked))}${faultInBrackets(signs.fault)}`
}

/** The whole reason of a host, each cause once: an agent that was stopped, or is silent, has no link either. */
export function wholeReason({ status, reason }: HostStanding, link: LinkSigns): string | null {
  const missing = linkReason(link)
  if (missing === null) return reason
  if (status === 'OFFLINE') return wasStopped(link.fault) ? missing : reason
  return reason === null ? missing : `${missing}, ${reason}`
}

/** The reason of a host as time has gone on since its server wrote it; `now` in milliseconds since 1970. */
export function reasonNow(
  { statusReason, agent }: Pick<Host, 'statusReason' | 'agent'>,
  now: number,
): string | null {
  const since = (at: string | null | undefined, words: string) => (found: string) =>
    at == null ? found : `${words} ${span(Math.max(0, now - Date.parse(at)) / 1000)}`
  return (
    statusReason
      ?.replace(/\bno link for \d+ \w+/, since(agent?.linkLostAt, 'no link for'))
      .replace(/\bagent was stopped \d+ \w+/, since(agent?.linkLostAt, 'agent was stopped'))
      .replace(/^no heartbeat for \d+ \w+/, since(agent?.lastHeartbeatAt, silenceWords)) ?? null
  )
}
