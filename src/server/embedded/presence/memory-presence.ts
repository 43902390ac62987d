import { isDeepStrictEqual } from 'node:util'
import {
  measuresNamed,
  nextLoad,
  noLoad,
  reachIntervals,
  silentIntervals,
  tellsTheSame,
} from '../../../core/host-status.ts'
import { type Clock, isoTime } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { Hints } from '../../seams/hints.ts'
import type { Presence } from '../../seams/presence.ts'
import { type KeptStatus, keepStatus, readKeptStatus } from './kept-status.ts'
import { heard, isHealthy, type KnownHost, neverHeard, reachOf, statusOf, viewOf } from './known-host.ts'

export interface PresenceOptions {
  /** Where the last known status is kept over a restart. */
  path: string
  heartbeatInterval: number
  /** Of this server. */
  version: string
  /** Seconds of high cpu or memory until the host is WARNING; 600 by default. */
  warnAfter?: number | undefined
  hints: Hints
  clock: Clock
  log: Log
}

/** How old may be what a crash leaves of the status of hosts, in milliseconds. */
const saveDelay = 1000
/** The same of when they were last heard, in milliseconds. */
const heardSaveInterval = 60_000
/** A sweep that comes so much late means that this process stood still: silence then proves nothing. */
const stallFactor = 3
const stranger = neverHeard()

export async function createPresence(options: PresenceOptions): Promise<Presence> {
  const { clock, hints, heartbeatInterval } = options
  const entries = new Map<number, KnownHost>()
  const silenceBound = silentIntervals * heartbeatInterval * 1000
  const reachBound = reachIntervals * heartbeatInterval * 1000
  const sweepInterval = Math.min(1000, (heartbeatInterval * 1000) / 4)
  let lastSweep = clock.monotonic()
  let saving: NodeJS.Timeout | null = null
  let savedAt = lastSweep
  let heardSinceSave = false
  let writing = Promise.resolve()
  let revision = 0

  const entry = (hostId: number): KnownHost => {
    let found = entries.get(hostId)
    if (!found) {
      found = neverHeard()
      entries.set(hostId, found)
    }
    return found
  }

  function judge(hostId: number, known: KnownHost): void {
    const next = statusOf(known, clock, options)
    const former = { status: known.status, reason: known.reason }
    known.status = next.status
    known.reason = next.reason
    const reachable = reachOf(known, clock, heartbeatInterval)
    const isNew = next.status !== former.status || reachable !== known.reachable
    known.reachable = reachable
    if (isNew) revision++
    const isSame = tellsTheSame(next, former)
    if (!isSame) save()
    if (isNew || !isSame) hints.publish('host', { id: hostId, change: 'updated' })
  }

  /** Whether it has been silent for so long that its status, or whether it is reachable, may be another now. */
  function isSilent({ heardAt, connected, reachable }: KnownHost, now: number): boolean {
    return heardAt !== null && now - heardAt >= (reachable && !connected ? reachBound : silenceBound)
  }

  function save(): void {
    saving ??= setTimeout(() => {
      saving = null
      void write()
    }, saveDelay).unref()
  }

  function* kept(): Generator<KeptStatus> {
    const timeOf = (at: number | null) => (at === null ? null : isoTime(at))
    for (const [hostId, known] of entries)
      if (known.heardAt !== null)
        yield {
          hostId,
          status: known.status,
          reason: known.reason,
          lastHeartbeatAt: timeOf(known.lastHeartbeatAt),
          agentStatus: known.agentStatus,
          running: known.greeting,
          says: known.says,
          linkLostAt: known.connected ? null : timeOf(known.linkLostAt),
          warns: known.load.warns,
        }
  }

  /** One after the other: the newest stays. */
  function write(): Promise<void> {
    writing = writing.then(async () => {
      savedAt = clock.monotonic()
      heardSinceSave = false
      await keepStatus(options.path, kept(), options.log)
    })
    return writing
  }

  /** After a restart the last known status stands until three intervals have passed (contract §3). */
  async function load(): Promise<void> {
    const rows = await readKeptStatus(options.path, options.log)
    for (const row of rows) {
      const { hostId, status, reason, lastHeartbeatAt, agentStatus, running = null } = row
      const { onDemand = null, linkFault = null, says, linkLostAt, warns = [] } = row
      const known = entry(hostId)
      Object.assign(known, { status, reason, agentStatus, greeting: running })
      known.lastHeartbeatAt = lastHeartbeatAt === null ? null : Date.parse(lastHeartbeatAt)
      known.heardAt = clock.monotonic()
      known.says = says ?? { onDemand, linkFault }
      known.linkLostAt = linkLostAt == null ? clock.now() : Date.parse(linkLostAt)
      known.load = { ...noLoad, warns }
      known.reachable = reachOf(known, clock, heartbeatInterval)
    }
  }

  await load()
  const sweep = setInterval(() => {
    const now = clock.monotonic()
    const late = now - lastSweep - sweepInterval
    lastSweep = now
    if (heardSinceSave && now - savedAt >= heardSaveInterval) save()
    for (const [hostId, known] of entries) {
      if (known.heardAt === null) continue
      if (late > stallFactor * sweepInterval) known.heardAt += late
      if (!isHealthy(known) || isSilent(known, now)) judge(hostId, known)
    }
  }, sweepInterval)
  sweep.unref()

  return {
    get revision() {
      return revision
    },
    views: async (hostIds) => hostIds.map((hostId) => viewOf(entries.get(hostId) ?? stranger, clock)),
    async standings(hostIds) {
      return hostIds.map((hostId) => {
        const { status, reachable } = entries.get(hostId) ?? stranger
        return { status, reachable }
      })
    },
    heartbeat(hostId, beat) {
      const { status } = beat
      const known = entry(hostId)
      const wasHealthy = isHealthy(known)
      heard(known, status, clock)
      heardSinceSave = true
      known.uptime = beat.uptime ?? null
      // A fault of before the link came up explains nothing once that is gone.
      const linkFault = known.connected ? null : (beat.says?.linkFault ?? null)
      const isOtherFault = linkFault !== (known.says.linkFault ?? null)
      known.says = { ...beat.says, linkFault }
      known.clock.note(beat.timestamp, clock.now())
      if (!wasHealthy || status !== 'HEALTHY' || !known.connected) judge(hostId, known)
      if (isOtherFault) hints.publish('host', { id: hostId, change: 'updated' })
    },
    metrics(hostId, metrics) {
      const known = entry(hostId)
      const now = clock.now()
      // A clock that was set back: what was new by the former one must not shut out what follows either.
      if (known.metricsAt > now) known.metricsAt = Number.NEGATIVE_INFINITY
      // A buffer that is being sent comes in order, but never makes the newest report older.
      const at = Math.min(Date.parse(metrics.timestamp), now)
      if (at < known.metricsAt) return
      known.metrics = metrics
      known.metricsAt = at
      known.load = nextLoad(known.load, metrics, clock.monotonic(), options.warnAfter)
      known.high = measuresNamed(metrics, known.load.warns)
      judge(hostId, known)
    },
    registered(hostId) {
      const known = entry(hostId)
      known.revoked = false
      known.says = {}
      // It may be another agent, which links in another way.
      known.greeting = null
      known.linkLostAt = null
      heard(known, 'HEALTHY', clock)
      judge(hostId, known)
    },
    connected(hostId, connected, linkFault) {
      // A link that closes because its host was deleted must not bring the host back.
      const known = connected ? entry(hostId) : entries.get(hostId)
      if (known) {
        if (known.connected && !connected) known.linkLostAt = clock.now()
        known.connected = connected
        if (connected || linkFault !== undefined) known.says = { ...known.says, linkFault: linkFault ?? null }
        judge(hostId, known)
        if (linkFault !== undefined) save()
      }
      hints.publish('host', { id: hostId, change: 'updated' })
    },
    greeted(hostId, greeting) {
      const known = entry(hostId)
      if (isDeepStrictEqual(known.greeting, greeting)) return
      known.greeting = greeting
      judge(hostId, known)
      save()
      hints.publish('host', { id: hostId, change: 'updated' })
    },
    revoked(hostId) {
      const known = entry(hostId)
      known.revoked = true
      judge(hostId, known)
    },
    duplicate(hostId, duplicate) {
      const known = entry(hostId)
      known.duplicate = duplicate
      judge(hostId, known)
    },
    forget(hostId) {
      entries.delete(hostId)
      revision++
      save()
    },
    async close() {
      clearInterval(sweep)
      if (saving) clearTimeout(saving)
      await write()
    },
  }
}
