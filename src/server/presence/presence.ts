import { isDeepStrictEqual } from 'node:util'
import { hostStatus, silentIntervals, tellsTheSame } from '../../core/host-status.ts'
import type { AgentStatus, HostStatus, Metrics } from '../../core/protocol/http/hosts.ts'
import type { Bus } from '../bus.ts'
import { type Clock, isoTime } from '../clock.ts'
import type { Log } from '../log.ts'
import { ClockComparison } from './clock-comparison.ts'
import { keepStatus, type RunningScripts, readKeptStatus } from './kept-status.ts'

/** What is known of a host just now; volatile, never in the store's journal. */
export interface PresenceView {
  status: HostStatus
  statusReason: string | null
  agentStatus: AgentStatus | null
  uptime: number | null
  lastHeartbeatAt: string | null
  connected: boolean
  metrics: Metrics | null
  /** How scripts run there, as the agent's last HELLO said it; null: not said. */
  running: RunningScripts | null
  agentReason: string | null
  onDemand: boolean | null
  linkFault: string | null
  /** About how far the agent's clock is ahead, in seconds; null: not said. */
  clockOffsetSeconds: number | null
}

/** What a heartbeat says. */
export interface Beat {
  readonly status: AgentStatus
  readonly uptime?: number | undefined
  /** ISO 8601 by the agent's clock: never trusted, only compared with ours for people. */
  readonly timestamp?: string | undefined
  readonly reason?: string | undefined
  readonly onDemand?: boolean | undefined
  readonly linkFault?: string | undefined
}

/** Last heartbeat and metrics of every host: one of the seams at which a fleet outgrows one machine. */
export interface Presence {
  views(hostIds: readonly number[]): Promise<PresenceView[]>
  /** Rises whenever the status of a host changes: what follows from all of them holds as long as this stands. */
  readonly revision: number
  heartbeat(hostId: number, beat: Beat): void
  metrics(hostId: number, metrics: Metrics): void
  /** Registration counts as a HEALTHY heartbeat (contract §3). */
  registered(hostId: number): void
  /** Whether its agent has a link over which it can be sent something. */
  connected(hostId: number, connected: boolean): void
  /** What the agent that has just linked says of how scripts run there; null: nothing. */
  greeted(hostId: number, running: RunningScripts | null): void
  /** Two agents with one identity fight for the link (contract §6). */
  duplicate(hostId: number, duplicate: boolean): void
  /** The agent's token was revoked: until an agent registers again the host is OFFLINE and says so. */
  revoked(hostId: number): void
  forget(hostId: number): void
  close(): Promise<void>
}

interface Entry {
  /** Monotonic time of the last sign of life, or of this server's start where that is later; null: never heard. */
  heardAt: number | null
  heardSinceStart: boolean
  /** Milliseconds since the epoch. */
  lastHeartbeatAt: number | null
  /** The same as text, once it was asked for: to write a time costs more than all else of a heartbeat. */
  lastHeartbeatText: string | null
  agentStatus: AgentStatus | null
  uptime: number | null
  metrics: Metrics | null
  /** Time of the newest report, no later than when it came: a clock that ran ahead must not shut out what follows. */
  metricsAt: number
  connected: boolean
  duplicate: boolean
  revoked: boolean
  status: HostStatus
  reason: string | null
  running: RunningScripts | null
  said: Pick<Beat, 'reason' | 'onDemand' | 'linkFault'> | null
  clock: ClockComparison
}

export interface PresenceOptions {
  /** Where the last known status is kept over a restart. */
  path: string
  heartbeatInterval: number
  bus: Bus
  clock: Clock
  log: Log
}

const saveDelay = 1000
/** A sweep that comes so much late means that this process stood still: silence then proves nothing. */
const stallFactor = 3

function neverHeard(): Entry {
  return {
    heardAt: null,
    heardSinceStart: false,
    lastHeartbeatAt: null,
    lastHeartbeatText: null,
    agentStatus: null,
    uptime: null,
    metrics: null,
    metricsAt: Number.NEGATIVE_INFINITY,
    connected: false,
    duplicate: false,
    revoked: false,
    status: 'OFFLINE',
    reason: 'never heard',
    running: null,
    said: null,
    clock: new ClockComparison(),
  }
}

/**
 * Whether a host is ONLINE by a HEALTHY heartbeat of this server's time. It stays so without being judged again until
 * something else is heard or it falls silent: metrics and duplicates are judged when they come.
 */
function isHealthy({ status, agentStatus, heardSinceStart }: Entry): boolean {
  return status === 'ONLINE' && agentStatus === 'HEALTHY' && heardSinceStart
}

function lastHeartbeatText(known: Entry): string | null {
  if (known.lastHeartbeatAt === null) return null
  return (known.lastHeartbeatText ??= isoTime(known.lastHeartbeatAt))
}

export async function createPresence(options: PresenceOptions): Promise<Presence> {
  const { clock, bus, heartbeatInterval } = options
  const entries = new Map<number, Entry>()
  const silenceBound = silentIntervals * heartbeatInterval * 1000
  const sweepInterval = Math.min(1000, (heartbeatInterval * 1000) / 4)
  let lastSweep = clock.monotonic()
  let saving: NodeJS.Timeout | null = null
  let revision = 0

  const entry = (hostId: number): Entry => {
    let found = entries.get(hostId)
    if (!found) {
      found = neverHeard()
      entries.set(hostId, found)
    }
    return found
  }

  function judge(hostId: number, known: Entry): void {
    const next = hostStatus({
      registered: known.heardAt !== null,
      revoked: known.revoked,
      secondsSilent: known.heardAt === null ? 0 : (clock.monotonic() - known.heardAt) / 1000,
      heartbeatInterval,
      agentStatus: known.heardSinceStart ? known.agentStatus : null,
      agentReason: known.said?.reason ?? null,
      metrics: known.metrics,
      last: { status: known.status, reason: known.reason },
      duplicateIdentity: known.duplicate,
    })
    const former = { status: known.status, reason: known.reason }
    known.status = next.status
    known.reason = next.reason
    if (tellsTheSame(next, former)) return
    if (next.status !== former.status) revision++
    save()
    bus.publish('host', hostId, { hostId, change: 'updated' })
  }

  function heard(known: Entry, status: AgentStatus): void {
    known.heardAt = clock.monotonic()
    known.heardSinceStart = true
    known.lastHeartbeatAt = clock.now()
    known.lastHeartbeatText = null
    known.agentStatus = status
  }

  function save(): void {
    saving ??= setTimeout(() => {
      saving = null
      void write()
    }, saveDelay).unref()
  }

  async function write(): Promise<void> {
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
      return hostIds.map((hostId) => {
        const known = entries.get(hostId) ?? neverHeard()
        return {
          status: known.status,
          statusReason: known.reason,
          agentStatus: known.agentStatus,
          uptime: known.uptime,
          lastHeartbeatAt: lastHeartbeatText(known),
          connected: known.connected,
          metrics: known.metrics,
          running: known.running,
          agentReason: known.said?.reason ?? null,
          onDemand: known.said?.onDemand ?? null,
          linkFault: known.connected ? null : (known.said?.linkFault ?? null),
          clockOffsetSeconds: known.clock.offsetSeconds(),
        }
      })
    },
    heartbeat(hostId, beat) {
      const { status } = beat
      const known = entry(hostId)
      const wasHealthy = isHealthy(known)
      heard(known, status)
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
      heard(known, 'HEALTHY')
      judge(hostId, known)
    },
    connected(hostId, connected) {
      // A link that closes because its host was deleted must not bring the host back.
      const known = connected ? entry(hostId) : entries.get(hostId)
      if (known) known.connected = connected
      if (connected && known?.said) known.said = { ...known.said, linkFault: undefined }
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
