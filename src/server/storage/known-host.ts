import type { AgentStatus, HostStatus, Metrics } from '../../core/hosts/host.ts'
import {
  type HostStanding,
  hostStatus,
  isReachable,
  type LinkSigns,
  type Load,
  lacksLink,
  type Measure,
  noLoad,
  wholeReason,
} from '../../core/hosts/host-status.ts'
import type { BeatFacts } from '../../core/protocol/http/hosts.ts'
import { skewReason } from '../../core/release.ts'
import { type Clock, isoTime } from '../../disk/clock.ts'
import type { Greeting, PresenceView } from './ports/presence.ts'

export interface KnownHost {
  /**
   * Monotonic time of the last sign of life, or of this server's start if that is later; null: never heard.
   */
  heardAt: number | null
  heardSinceStart: boolean
  /** Milliseconds since the epoch. */
  lastHeartbeatAt: number | null
  agentStatus: AgentStatus | null
  uptime: number | null
  /** The newest report. */
  metrics: Metrics | null
  /** Time of the newest report, at most its arrival: a clock that ran ahead must not block later reports. */
  metricsAt: number
  load: Load
  /** Measures that warn. */
  high: readonly Measure[]
  connected: boolean
  /** Milliseconds since the epoch: when its link was lost, or when this server started without it. */
  linkLostAt: number | null
  reachable: boolean
  /** Whether it sends heartbeats but its agent lacks the link that it should have. */
  noLink: boolean
  duplicate: boolean
  revoked: boolean
  status: HostStatus
  reason: string | null
  /** HELLO of the agent over `rsm.1`; null if there never was one. */
  greeting: Greeting | null
  says: Partial<BeatFacts>
  clock: ClockComparison
}

export function neverHeard(): KnownHost {
  return {
    heardAt: null,
    heardSinceStart: false,
    lastHeartbeatAt: null,
    agentStatus: null,
    uptime: null,
    metrics: null,
    metricsAt: Number.NEGATIVE_INFINITY,
    load: noLoad,
    high: [],
    connected: false,
    linkLostAt: null,
    reachable: false,
    noLink: false,
    duplicate: false,
    revoked: false,
    status: 'OFFLINE',
    reason: 'never heard',
    greeting: null,
    says: {},
    clock: new ClockComparison(),
  }
}

/**
 * Whether a host is ONLINE by a HEALTHY heartbeat since this server's start. It stays so without another
 * judgement until something else is reported or it falls silent: metrics and duplicates are judged on
 * arrival.
 */
export function isHealthy({ status, agentStatus, heardSinceStart }: KnownHost): boolean {
  return status === 'ONLINE' && agentStatus === 'HEALTHY' && heardSinceStart
}

export function heard(known: KnownHost, status: AgentStatus, clock: Clock): void {
  known.heardAt = clock.monotonic()
  known.heardSinceStart = true
  known.lastHeartbeatAt = clock.now()
  known.agentStatus = status
}

const secondsSilent = ({ heardAt }: KnownHost, clock: Clock): number =>
  heardAt === null ? 0 : (clock.monotonic() - heardAt) / 1000

/** Status by the last reports, at a server of this version; `heartbeatInterval` in seconds. */
export function statusOf(
  known: KnownHost,
  clock: Clock,
  { heartbeatInterval, version }: { heartbeatInterval: number; version: string },
): HostStanding {
  const agentVersion = known.greeting?.agentVersion
  return hostStatus({
    registered: known.heardAt !== null,
    revoked: known.revoked,
    secondsSilent: secondsSilent(known, clock),
    secondsSinceHeartbeat:
      known.lastHeartbeatAt === null ? null : (clock.now() - known.lastHeartbeatAt) / 1000,
    heartbeatInterval,
    agentStatus: known.heardSinceStart ? known.agentStatus : null,
    agentReason: known.says.statusReason ?? null,
    high: known.high,
    last: { status: known.status, reason: known.reason },
    duplicateIdentity: known.duplicate,
    // Foreign agents have their own version numbers, and send no HELLO.
    skew: agentVersion === undefined ? null : skewReason(agentVersion, version),
  })
}

function linkSigns(known: KnownHost, clock: Clock): LinkSigns {
  return {
    connected: known.connected,
    hasLinked: known.greeting !== null,
    onDemand: known.says.onDemand === true,
    secondsUnlinked: known.linkLostAt === null ? 0 : (clock.now() - known.linkLostAt) / 1000,
    fault: known.says.linkFault ?? null,
  }
}

/** Like `secondsSilent`, but a server start is not a sign of life: before it, the last heartbeat counts. */
function secondsUnheard(known: KnownHost, clock: Clock): number {
  const silent = secondsSilent(known, clock)
  if (known.heardSinceStart) return silent
  if (known.lastHeartbeatAt === null) return Number.POSITIVE_INFINITY
  return Math.max(silent, (clock.now() - known.lastHeartbeatAt) / 1000)
}

/** Updates reachability by the last judged status; `heartbeatInterval` in seconds. */
export function noteReach(known: KnownHost, clock: Clock, heartbeatInterval: number): void {
  const { status, reason } = known
  const heard = { status, reason, secondsSilent: secondsUnheard(known, clock), heartbeatInterval }
  const link = linkSigns(known, clock)
  known.reachable = isReachable(link, heard)
  known.noLink = status !== 'OFFLINE' && lacksLink(link)
}

/** A revoked agent is not expected to link. */
const reasonOf = (known: KnownHost, clock: Clock): string | null =>
  known.revoked ? known.reason : wholeReason(known, linkSigns(known, clock))

export function viewOf(known: KnownHost, clock: Clock): PresenceView {
  return {
    status: known.status,
    statusReason: reasonOf(known, clock),
    reachable: known.reachable,
    noLink: known.noLink,
    agentStatus: known.agentStatus,
    uptime: known.uptime,
    lastHeartbeatAt: known.lastHeartbeatAt === null ? null : isoTime(known.lastHeartbeatAt),
    connected: known.connected,
    linkLostAt:
      known.connected || known.linkLostAt === null || known.greeting === null
        ? null
        : isoTime(known.linkLostAt),
    metrics: known.metrics,
    greeting: known.greeting,
    says: known.connected ? { ...known.says, linkFault: null } : known.says,
    clockOffsetSeconds: known.clock.offsetSeconds(),
  }
}

/**
 * Estimates how far an agent's clock is ahead, by the last two heartbeats. Delays make it look behind, never
 * ahead, so the larger offset is closer to the truth, and one late heartbeat does no harm.
 */
export class ClockComparison {
  /** Milliseconds; NaN if the time is unreadable, null without one. */
  #last: number | null = null
  #before: number | null = null

  /** `text` is ISO 8601 by the agent's clock, `at` milliseconds since 1970 by the server's. */
  note(text: string | undefined, at: number): void {
    this.#before = this.#last
    this.#last = text === undefined ? null : Date.parse(text) - at
  }

  /** Rounded to tenths; negative if the agent's clock is behind, null without a readable time. */
  offsetSeconds(): number | null {
    if (this.#last === null) return null
    const offsets = [this.#last, this.#before].filter(
      (offset) => offset !== null && !Number.isNaN(offset),
    ) as number[]
    if (offsets.length === 0) return null
    return Math.round(Math.max(...offsets) / 100) / 10
  }
}
