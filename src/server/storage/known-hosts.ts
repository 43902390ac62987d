import { isDeepStrictEqual } from 'node:util'
import {
  isSameStanding,
  measuresNamed,
  nextLoad,
  reachIntervals,
  silentIntervals,
} from '../../core/hosts/host-status.ts'
import { longestBackoff } from '../../core/protocol/bounds.ts'
import type { Clock } from '../../disk/clock.ts'
import { heard, isHealthy, type KnownHost, neverHeard, noteReach, statusOf, viewOf } from './known-host.ts'
import type { Hints } from './ports/hints.ts'
import type { Heard, Views } from './ports/presence.ts'

export interface JudgingOptions {
  /** Seconds. */
  heartbeatInterval: number
  /** Version of this server. */
  version: string
  /** Seconds of high cpu or memory until the host is WARNING; 600 by default. */
  warnAfter?: number | undefined
  clock: Clock
}

interface KnownHostsOptions extends JudgingOptions {
  hints: Pick<Hints, 'publish'>
  /** Persistent state of the host changed. */
  changed: (hostId: number) => void
  /** Whether this server cannot reach its store: it refuses agents then, so they back off. */
  isCutOff(): boolean
}

/** In-memory state of hosts, and their status as time passes. */
export interface KnownHosts extends Heard, Views {
  readonly entries: ReadonlyMap<number, KnownHost>
  entry(hostId: number): KnownHost
  /** Re-evaluates a host whose state changed. */
  judge(hostId: number): void
  /** A server that held links is gone: its agents will reconnect. */
  awaitReturn(): void
  close(): void
}

/** A sweep this many intervals late means that the process stalled, so silence proves nothing. */
const stallFactor = 3
/** Milliseconds of a stall after which agents time out and back off. */
const longStall = 30_000
/** Milliseconds that refused agents get to reconnect: their longest backoff, jitter and a slow network. */
const returnTime = 1.5 * longestBackoff
const stranger = neverHeard()

export function createKnownHosts(options: KnownHostsOptions): KnownHosts {
  const { clock, hints, heartbeatInterval, changed } = options
  const entries = new Map<number, KnownHost>()
  const silenceBound = silentIntervals * heartbeatInterval * 1000
  const reachBound = reachIntervals * heartbeatInterval * 1000
  const sweepInterval = Math.min(1000, (heartbeatInterval * 1000) / 4)
  let lastSweep = clock.monotonic()
  let revision = 0
  /** Monotonic milliseconds; agents are reconnecting to a server that has just started. */
  let returnsUntil = lastSweep + returnTime

  const entry = (hostId: number): KnownHost => {
    let found = entries.get(hostId)
    if (!found) {
      found = neverHeard()
      entries.set(hostId, found)
    }
    return found
  }

  function judge(hostId: number): void {
    const known = entry(hostId)
    const next = statusOf(known, clock, options)
    const { status, reason, reachable, noLink } = known
    const previous = { status, reason }
    known.status = next.status
    known.reason = next.reason
    noteReach(known, clock, heartbeatInterval)
    const isNew = next.status !== status || reachable !== known.reachable || noLink !== known.noLink
    if (isNew) revision++
    const isSame = isSameStanding(next, previous)
    if (!isSame) changed(hostId)
    if (isNew || !isSame) hints.publish('host', { id: hostId, change: 'updated' })
  }

  /** Whether it has been silent long enough to change its status or its reachability. */
  function isSilent({ heardAt, connected, reachable }: KnownHost, now: number): boolean {
    return heardAt !== null && now - heardAt >= (reachable && !connected ? reachBound : silenceBound)
  }

  const awaitReturn = () => {
    returnsUntil = clock.monotonic() + returnTime
  }

  const sweep = setInterval(() => {
    const now = clock.monotonic()
    const late = now - lastSweep - sweepInterval
    lastSweep = now
    const lost = late > stallFactor * sweepInterval ? late : 0
    const backsOff = options.isCutOff() || late > longStall
    if (backsOff) awaitReturn()
    // Postpone OFFLINE until the agents had time to reconnect.
    const excused = now + Math.max(0, returnTime - silenceBound)
    for (const [hostId, known] of entries) {
      if (known.heardAt === null) continue
      known.heardAt += lost
      if (backsOff && known.status !== 'OFFLINE') known.heardAt = Math.max(known.heardAt, excused)
      if (known.status !== 'OFFLINE' && (!isHealthy(known) || isSilent(known, now))) judge(hostId)
    }
  }, sweepInterval)
  sweep.unref()

  return {
    entries,
    entry,
    judge,
    get revision() {
      return revision
    },
    get isReturning() {
      return clock.monotonic() < returnsUntil
    },
    awaitReturn,
    views: async (hostIds) =>
      hostIds.map((hostId) => {
        const known = entries.get(hostId) ?? stranger
        // Time alone changes only the duration of the silence.
        if (known.status === 'OFFLINE' && known !== stranger) judge(hostId)
        return viewOf(known, clock)
      }),
    async standings(hostIds) {
      return hostIds.map((hostId) => {
        const { status, reachable, noLink } = entries.get(hostId) ?? stranger
        return { status, reachable, noLink }
      })
    },
    heartbeat(hostId, beat) {
      const { status } = beat
      const known = entry(hostId)
      const wasHealthy = isHealthy(known)
      heard(known, status, clock)
      known.uptime = beat.uptime ?? null
      // Ignore link faults while connected: they would be outdated once the link is lost.
      const linkFault = known.connected ? null : (beat.says?.linkFault ?? null)
      const isOtherFault = linkFault !== (known.says.linkFault ?? null)
      known.says = { ...beat.says, linkFault }
      known.clock.note(beat.timestamp, clock.now())
      if (!wasHealthy || status !== 'HEALTHY' || !known.connected) judge(hostId)
      if (isOtherFault) hints.publish('host', { id: hostId, change: 'updated' })
    },
    metrics(hostId, metrics) {
      const known = entry(hostId)
      const now = clock.now()
      // The clock was set back: a time by the old clock must not block later reports either.
      if (known.metricsAt > now) known.metricsAt = Number.NEGATIVE_INFINITY
      // A replayed buffer arrives in order, but must not make the newest report older.
      const at = Math.min(Date.parse(metrics.timestamp), now)
      if (at < known.metricsAt) return
      known.metrics = metrics
      known.metricsAt = at
      known.load = nextLoad(known.load, metrics, clock.monotonic(), options.warnAfter)
      known.high = measuresNamed(metrics, known.load.warns)
      judge(hostId)
    },
    registered(hostId) {
      const known = entry(hostId)
      known.revoked = false
      known.says = {}
      // May be another agent, which links in another way.
      known.greeting = null
      known.linkLostAt = null
      heard(known, 'HEALTHY', clock)
      judge(hostId)
    },
    connected(hostId, connected, linkFault) {
      // A link that closes because its host was deleted must not bring the host back.
      const known = connected ? entry(hostId) : entries.get(hostId)
      if (known) {
        if (known.connected && !connected) known.linkLostAt = clock.now()
        known.connected = connected
        if (connected || linkFault !== undefined) known.says = { ...known.says, linkFault: linkFault ?? null }
        judge(hostId)
        if (linkFault !== undefined) changed(hostId)
      }
      hints.publish('host', { id: hostId, change: 'updated' })
    },
    greeted(hostId, greeting) {
      const known = entry(hostId)
      if (isDeepStrictEqual(known.greeting, greeting)) return
      known.greeting = greeting
      judge(hostId)
      changed(hostId)
      hints.publish('host', { id: hostId, change: 'updated' })
    },
    revoked(hostId) {
      entry(hostId).revoked = true
      judge(hostId)
    },
    duplicate(hostId, duplicate) {
      entry(hostId).duplicate = duplicate
      judge(hostId)
    },
    forget(hostId) {
      entries.delete(hostId)
      revision++
      changed(hostId)
    },
    close: () => clearInterval(sweep),
  }
}
