import { stoppedReason } from '../protocol/close-codes.ts'
import type { Host } from '../protocol/http/hosts.ts'
import { span } from '../text/duration.ts'
import type { AgentStatus, HostStatus, Metrics } from './host.ts'

/** A host's status and, unless it is ONLINE, the reason (contract §3 "Hosts and their status"). */
export interface HostStanding {
  readonly status: HostStatus
  readonly reason: string | null
}

export interface HostSigns {
  readonly registered: boolean
  /** Whether the token of its agent was revoked, and no agent has registered since. */
  readonly revoked?: boolean
  /** Since the last heartbeat or registration, at most since the server's start. By the monotonic clock. */
  readonly secondsSilent: number
  /** Since the last heartbeat, across restarts, by the server's wall clock: for display only. */
  readonly secondsSinceHeartbeat?: number | null
  /** Seconds. */
  readonly heartbeatInterval: number
  /** From the last heartbeat since the server's start; a registration counts as HEALTHY; null without either. */
  readonly agentStatus: AgentStatus | null
  /** Why it is not HEALTHY, as reported by the agent. */
  readonly agentReason?: string | null
  /** Measures that warn, the highest first. */
  readonly high: readonly Measure[]
  /** Previous status; survives a restart of the server. */
  readonly last: HostStanding | null
  /** Reason why its agent's release is too far from the server's; null if it is not. */
  readonly skew?: string | null
  /** Two agents use the same identity (contract §6). */
  readonly duplicateIdentity: boolean
}

/** Missed heartbeat intervals after which a host is OFFLINE (contract §3). */
export const silentIntervals = 3

/** Reasons that `rsm hosts doctor` recognises by their text. */
export const revokedReason = 'its agent token was revoked'
export const duplicateReason = 'two agents use the identity of this host'

/** Most measures that a reason lists: the highest. */
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

/** Seconds that cpu and memory must stay high before they warn, by default (contract §3). */
const defaultWarnAfter = 600

const isDisk = ({ name }: Measure): boolean => /^(disk|inodes) /.test(name)

export interface Load {
  readonly warns: readonly string[]
  /** Time since which cpu or memory was high in every report, monotonic milliseconds. */
  readonly highSince: Readonly<Record<string, number>>
}

export const noLoad: Load = { warns: [], highSince: {} }

/**
 * Updates the load with a report. A disk warns at once, cpu and memory once every report for `warnAfter` seconds was
 * high; a warning lasts until it clears. `now` is monotonic, in milliseconds.
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

/** The named measures of a report, the highest first. */
export function measuresNamed(metrics: Metrics | null, names: readonly string[]): Measure[] {
  return measuresOf(metrics)
    .filter(({ name }) => names.includes(name))
    .sort((a, b) => b.percent - a.percent)
}

/** Highest first: disks, and cpu and memory if the host's reason names them, because short peaks are normal. */
export function highMeasures(metrics: Metrics | null, { status, reason }: HostStanding): Measure[] {
  const least = status === 'WARNING' ? clearPercent : warnPercent
  const isNamed = ({ name }: Measure) =>
    reason !== null && (reason.includes(`${name} `) || / \d+ more\b/.test(reason))
  const measures = measuresOf(metrics).filter((measure) => isDisk(measure) || isNamed(measure))
  const high = measures.filter(({ percent }) => percent >= warnPercent)
  const shown = high.length > 0 ? high : measures.filter(({ percent }) => percent >= least)
  return shown.sort((a, b) => b.percent - a.percent)
}

/** Rounds down, because 89.6 % must not read as the 90 % at which it would warn. */
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

/** The reason without percentages and order, which change with every report. */
function causes({ reason }: HostStanding): string {
  return (reason ?? '')
    .replace(/(?<!\d)\d+ %/g, '')
    .split(', ')
    .sort()
    .join(', ')
}

/** Whether a change between two standings needs no event: the same status, and the same causes. */
export function isSameStanding(one: HostStanding, other: HostStanding): boolean {
  if (one.status !== other.status) return false
  return one.status !== 'WARNING' || one.reason === other.reason || causes(one) === causes(other)
}

const silenceWords = 'no heartbeat for'

function silence(seconds: number): HostStanding {
  return { status: 'OFFLINE', reason: `${silenceWords} ${span(seconds)}` }
}

/** A host that was OFFLINE before a restart has been silent longer than the server runs. */
function stillOffline(last: HostStanding, { secondsSilent, secondsSinceHeartbeat }: HostSigns): HostStanding {
  const isSilence = last.reason?.startsWith(silenceWords) === true
  if (!isSilence || secondsSinceHeartbeat == null) return last
  return silence(Math.max(secondsSilent, secondsSinceHeartbeat))
}

/** Derives a host's status without a clock (contract §3). */
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

/** Link state of a host; with `HostSigns` it decides whether scripts can reach it. */
export interface LinkSigns {
  readonly connected: boolean
  /** Whether its agent ever linked over `rsm.1`; other agents are reachable without a link that the server sees. */
  readonly hasLinked: boolean
  readonly onDemand: boolean
  readonly secondsUnlinked: number
  /** Why there is no link; null if unknown. */
  readonly fault: string | null
}

/** Heartbeat intervals for which a host without a link counts as reachable. */
export const reachIntervals = 2

/** Whether scripts reach a host (contract §3 "Reachable"). */
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

/** Whether a script would reach a host, as its server reports it; older servers report only whether it is OFFLINE. */
export function canBeReached({ status, agent }: Pick<Host, 'status' | 'agent'>): boolean {
  const said: boolean | undefined = agent?.reachable
  return said ?? status !== 'OFFLINE'
}

/** Statuses for people; NO LINK: the agent lost a link that it should have (contract §3). */
export const shownStatuses = ['ONLINE', 'WARNING', 'NO LINK', 'OFFLINE'] as const
export type ShownStatus = (typeof shownStatuses)[number]

/** A shown status as one word, for selectors, flags and metrics: `NO_LINK`. */
export const statusWord = (status: ShownStatus): string => status.replace(' ', '_')
export const statusWords = shownStatuses.map(statusWord)

/** Hosts of older servers, which do not report reachability, keep their status. */
export function shownStatus(host: Pick<Host, 'status' | 'agent'>): ShownStatus {
  const { status, agent } = host
  const lacksLink = !canBeReached(host) && agent?.onDemand !== true && agent?.linkLostAt !== null
  return status !== 'OFFLINE' && lacksLink ? 'NO LINK' : status
}

/** Whether an agent closed its link because it was being stopped. */
export const wasStopped = (fault: string | null | undefined): boolean =>
  fault?.startsWith(stoppedReason) === true

/** Why a host has no link, without the time: ` (the agent was stopped)`; empty if unknown. */
export function faultInBrackets(fault: string | null | undefined): string {
  if (fault === null || fault === undefined) return ''
  return ` (${wasStopped(fault) ? stoppedReason : fault})`
}

export const lacksLink = ({ connected, hasLinked, onDemand }: Omit<LinkSigns, 'secondsUnlinked' | 'fault'>) =>
  !connected && hasLinked && !onDemand

export const stoppedAgo = (seconds: number): string =>
  `its agent was stopped ${span(Math.max(0, seconds))} ago`

/** Reason for a host whose agent lacks its link: `no link for 12 s (HTTP 502)`, `its agent was stopped 12 s ago`. */
export function linkReason(signs: LinkSigns): string | null {
  if (!lacksLink(signs)) return null
  if (wasStopped(signs.fault)) return stoppedAgo(signs.secondsUnlinked)
  return `no link for ${span(Math.max(0, signs.secondsUnlinked))}${faultInBrackets(signs.fault)}`
}

/** A host's full reason, each cause once: an agent that was stopped, or is silent, has no link either. */
export function wholeReason({ status, reason }: HostStanding, link: LinkSigns): string | null {
  const missing = linkReason(link)
  if (missing === null) return reason
  if (status === 'OFFLINE') return wasStopped(link.fault) ? missing : reason
  return reason === null ? missing : `${missing}, ${reason}`
}

/** Updates the times in a reason since the server wrote it; `now` in milliseconds since 1970. */
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
