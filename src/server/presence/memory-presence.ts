import { isDeepStrictEqual } from 'node:util'
import { silentIntervals, tellsTheSame } from '../../core/host-status.ts'
import type { Bus } from '../bus.ts'
import { type Clock, isoTime } from '../clock.ts'
import type { Log } from '../log.ts'
import { keepStatus, readKeptStatus } from './kept-status.ts'
import { heard, isHealthy, type KnownHost, neverHeard, statusOf, viewOf } from './known-host.ts'
import type { Presence } from './presence.ts'

export interface PresenceOptions {
  /** Where the last known status is kept over a restart. */
  path: string
  heartbeatInterval: number
  bus: Bus
  clock: Clock
  log: Log
}

const saveDelay = 1000
/** How old may be what a crash leaves of when hosts were last heard, in milliseconds. */
const heardSaveInterval = 60_000
/** A sweep that comes so much late means that this process stood still: silence then proves nothing. */
const stallFactor = 3

export async function createPresence(options: PresenceOptions): Promise<Presence> {
  const { clock, bus, heartbeatInterval } = options
  const entries = new Map<number, KnownHost>()
  const silenceBound = silentIntervals * heartbeatInterval * 1000
  const sweepInterval = Math.min(1000, (heartbeatInterval * 1000) / 4)
  let lastSweep = clock.monotonic()
  let saving: NodeJS.Timeout | null = null
  let savedAt = lastSweep
  let heardSinceSave = false
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
    const next = statusOf(known, clock, heartbeatInterval)
    const former = { status: known.status, reason: known.reason }
    known.status = next.status
    known.reason = next.reason
    if (tellsTheSame(next, former)) return
    if (next.status !== former.status) revision++
    save()
    bus.publish('host', hostId, { hostId, change: 'updated' })
  }

  function save(): void {
    saving ??= setTimeout(() => {
      saving = null
      void write()
    }, saveDelay).unref()
  }

  async function write(): Promise<void> {
    savedAt = clock.monotonic()
    heardSinceSave = false
    const rows = [...entries].filter(([, { heardAt }]) => heardAt !== null)
    const kept = rows.map(([hostId, { status, reason, lastHeartbeatAt, agentStatus, running }]) => ({
      hostId,
      status,
      reason,
      lastHeartbeatAt: lastHeartbeatAt === null ? null : isoTime(lastHeartbeatAt),
      agentStatus,
      running,
    }))
    await keepStatus(options.path, kept, options.log)
  }

  /** After a restart the last known status stands until three intervals have passed (contract §3). */
  async function load(): Promise<void> {
    const rows = await readKeptStatus(options.path, options.log)
    for (const { hostId, status, reason, lastHeartbeatAt, agentStatus, running = null } of rows) {
      const known = entry(hostId)
      Object.assign(known, { status, reason, agentStatus, running })
      known.lastHeartbeatAt = lastHeartbeatAt === null ? null : Date.parse(lastHeartbeatAt)
      known.heardAt = clock.monotonic()
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
      if (!isHealthy(known) || now - known.heardAt >= silenceBound) judge(hostId, known)
    }
  }, sweepInterval)
  sweep.unref()

  return {
    get revision() {
      return revision
    },
    async views(hostIds) {
      return hostIds.map((hostId) => viewOf(entries.get(hostId) ?? neverHeard()))
    },
    heartbeat(hostId, beat) {
      const { status } = beat
      const known = entry(hostId)
      const wasHealthy = isHealthy(known)
      heard(known, status, clock)
      heardSinceSave = true
      known.uptime = beat.uptime ?? null
      // Not the whole body: what is not known in it may be large.
      // A fault of before the link came up explains nothing once that is gone.
      const linkFault = known.connected ? undefined : beat.linkFault
      known.said = { reason: beat.reason, onDemand: beat.onDemand, linkFault }
      known.clock.note(beat.timestamp, clock.now())
      if (!wasHealthy || status !== 'HEALTHY') judge(hostId, known)
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
      judge(hostId, known)
    },
    registered(hostId) {
      const known = entry(hostId)
      known.revoked = false
      known.said = null
      heard(known, 'HEALTHY', clock)
      judge(hostId, known)
    },
    connected(hostId, connected, linkFault) {
      // A link that closes because its host was deleted must not bring the host back.
      const known = connected ? entry(hostId) : entries.get(hostId)
      if (known) known.connected = connected
      if (known && (connected || linkFault !== undefined)) known.said = { ...known.said, linkFault }
      bus.publish('host', hostId, { hostId, change: 'updated' })
    },
    greeted(hostId, running) {
      const known = entry(hostId)
      if (isDeepStrictEqual(known.running, running)) return
      known.running = running
      save()
      bus.publish('host', hostId, { hostId, change: 'updated' })
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
