import type { AgentStatus, HostStatus, Metrics } from '../../../core/hosts/host.ts'
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
} from '../../../core/hosts/host-status.ts'
import type { BeatFacts } from '../../../core/protocol/http/host-agent.ts'
import { skewReason } from '../../../core/release.ts'
import { type Clock, isoTime } from '../../../disk/clock.ts'
import type { Greeting, PresenceView } from '../ports/presence.ts'

/** State of one host: what was heard, and what follows from it. */
export interface KnownHost {
  /** Monotonic time of the last sign of life, or of this server's start where that is later; null: never heard. */
  heardAt: number | null
  heardSinceStart: boolean
  /** Milliseconds since the epoch. */
  lastHeartbeatAt: number | null
  agentStatus: AgentStatus | null
  uptime: number | null
  /** The newest report. */
  metrics: Metrics | null
  /** Time of the newest report, no later than when it came: a clock that ran ahead must not shut out what follows. */
  metricsAt: number
  load: Load
  /** The measures that warn. */
  high: readonly Measure[]
  connected: boolean
  /** Milliseconds since the epoch: when its link was lost, or this server started without it. */
  linkLostAt: number | null
  /** Whether what is sent to it gets there. */
  reachable: boolean
  /** Whether it is heard, and its agent lacks the link that it should have. */
  noLink: boolean
  duplicate: boolean
  revoked: boolean
  status: HostStatus
  reason: string | null
  /** Of the agent's HELLO over `rsm.1`; null where there never was one. */
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
 * Whether a host is ONLINE by a HEALTHY heartbeat of this server's time. It stays so without being judged again until
 * something else is heard or it falls silent: metrics and duplicates are judged when they come.
 */
export function isHealthy({ status, agentStatus, heardSinceStart }: KnownHost): boolean {
  return status === 'ONLINE' && agentStatus === 'HEALTHY' && heardSinceStart
}

/** A sign of life has come. */
export function heard(known: KnownHost, status: AgentStatus, clock: Clock): void {
  known.heardAt = clock.monotonic()
  known.heardSinceStart = true
  known.lastHeartbeatAt = clock.now()
  known.agentStatus = status
}

const secondsSilent = ({ heardAt }: KnownHost, clock: Clock): number =>
  heardAt === null ? 0 : (clock.monotonic() - heardAt) / 1000

/** Its status by what was heard, at a server of this version; `heartbeatInterval` in seconds. */
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
    // Agents that are not ours count their versions as they like, and say no HELLO.
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

/** As `secondsSilent`, but a start of this server is no sign of life: of before it counts when the host was last heard. */
function secondsUnheard(known: KnownHost, clock: Clock): number {
  const silent = secondsSilent(known, clock)
  if (known.heardSinceStart) return silent
  if (known.lastHeartbeatAt === null) return Number.POSITIVE_INFINITY
  return Math.max(silent, (clock.now() - known.lastHeartbeatAt) / 1000)
}

/** Notes whether it can be reached by its status as it was judged last; `heartbeatInterval` in seconds. */
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
 * How far an agent's clock is ahead of ours, by the last two heartbeats. What the network and this server take makes it
 * look behind, never ahead: so the larger of both is nearer to the truth, and one late heartbeat tells nothing wrong.
 */
export class ClockComparison {
  /** Milliseconds; NaN where the time can't be read, null where none was said. */
  #last: number | null = null
  #before: number | null = null

  /** `text` is ISO 8601 by the agent's clock, `at` milliseconds since 1970 by ours. */
  note(text: string | undefined, at: number): void {
    this.#before = this.#last
    this.#last = text === undefined ? null : Date.parse(text) - at
  }

  /** Rounded to tenths; negative where the agent's clock is behind, null without a readable time. */
  offsetSeconds(): number | null {
    if (this.#last === null) return null
    const offsets = [this.#last, this.#before].filter(
      (offset) => offset !== null && !Number.isNaN(offset),
    ) as number[]
    if (offsets.length === 0) return null
    return Math.round(Math.max(...offsets) / 100) / 10
  }
}
