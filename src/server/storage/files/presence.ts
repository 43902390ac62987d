import { readFile } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import type { AgentStatus, HostStatus } from '../../../core/hosts/host.ts'
import { noLoad } from '../../../core/hosts/host-status.ts'
import { Mutex } from '../../../core/mutex.ts'
import type { BeatFacts } from '../../../core/protocol/http/hosts.ts'
import { isoTime } from '../../../disk/clock.ts'
import { isMissing, writeFileDurably } from '../../../disk/durable.ts'
import type { Log } from '../../../disk/log.ts'
import { noteReach } from '../known-host.ts'
import { createKnownHosts, type JudgingOptions, type KnownHosts } from '../known-hosts.ts'
import type { Hints } from '../ports/hints.ts'
import type { Greeting, Presence } from '../ports/presence.ts'
import type { LastKnown } from '../streams.ts'

export interface PresenceOptions extends JudgingOptions {
  path: string
  hints: Hints
  log: Log
}

/** Milliseconds of status changes that a crash may lose. */
const saveDelay = 1000
/** Milliseconds of heartbeat times that a crash may lose. */
const heardSaveInterval = 60_000
const heardCheckInterval = 1000

export async function createPresence(options: PresenceOptions): Promise<Presence> {
  const { clock } = options
  let saving: NodeJS.Timeout | null = null
  let savedAt = clock.monotonic()
  let heardSinceSave = false
  const writes = new Mutex()

  function save(): void {
    saving ??= setTimeout(() => {
      saving = null
      void write()
    }, saveDelay).unref()
  }
  const hosts = createKnownHosts({ ...options, changed: save, isCutOff: () => false })

  /** One at a time, so that the newest write stays. */
  function write(): Promise<void> {
    return writes.run(async () => {
      savedAt = clock.monotonic()
      heardSinceSave = false
      await saveStatus(options.path, kept(hosts), options.log)
    })
  }

  await load(hosts, options)
  const heardCheck = setInterval(() => {
    if (heardSinceSave && clock.monotonic() - savedAt >= heardSaveInterval) save()
  }, heardCheckInterval).unref()

  return {
    ...hosts,
    get revision() {
      return hosts.revision
    },
    get isReturning() {
      return hosts.isReturning
    },
    heartbeat(hostId, beat) {
      heardSinceSave = true
      hosts.heartbeat(hostId, beat)
    },
    async close() {
      hosts.close()
      clearInterval(heardCheck)
      if (saving) clearTimeout(saving)
      await write()
    },
  }
}

function* kept({ entries }: KnownHosts): Generator<KeptStatus> {
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

/** Loads the last known status, which stands until three intervals have passed (contract §3). */
async function load(
  hosts: KnownHosts,
  { path, clock, heartbeatInterval, log }: PresenceOptions,
): Promise<void> {
  for (const row of await readKeptStatus(path, log)) {
    const { hostId, lastHeartbeatAt, linkLostAt, warns, ...rest } = lastKnownOf(row)
    const known = hosts.entry(hostId)
    Object.assign(known, rest)
    known.lastHeartbeatAt = lastHeartbeatAt === null ? null : Date.parse(lastHeartbeatAt)
    known.heardAt = clock.monotonic()
    known.linkLostAt = linkLostAt === null ? clock.now() : Date.parse(linkLostAt)
    known.load = { ...noLoad, warns }
    noteReach(known, clock, heartbeatInterval)
  }
}

export interface KeptStatus {
  readonly hostId: number
  readonly status: HostStatus
  readonly reason: string | null
  /** ISO 8601. */
  readonly lastHeartbeatAt: string | null
  readonly agentStatus: AgentStatus | null
  /** Absent in files of older servers. */
  readonly running?: Greeting | null
  /** Absent in files of older servers, which have the next two fields instead. */
  readonly says?: Partial<BeatFacts>
  readonly onDemand?: boolean | null
  readonly linkFault?: string | null
  /** When it lost its link: ISO 8601. Absent in files of older servers, like the next field. */
  readonly linkLostAt?: string | null
  /** Measures that warn. */
  readonly warns?: readonly string[]
}

/**
 * Hosts whose rows are built in one turn: ten thousand at once would delay other requests by 20 ms and more.
 */
const rowsPerBatch = 500

export async function saveStatus(path: string, kept: Iterable<KeptStatus>, log: Log): Promise<void> {
  const rows: string[] = []
  for (const row of kept) {
    rows.push(JSON.stringify(row))
    if (rows.length % rowsPerBatch === 0) await setImmediate()
  }
  try {
    await writeFileDurably(path, `[${rows.join(',\n')}]\n`)
  } catch (error) {
    log.warn({ err: error }, 'cannot save the last known status of hosts')
  }
}

/** Last known status in a row, written by any version of the server. */
export function lastKnownOf(row: KeptStatus): Omit<LastKnown, 'revoked'> {
  const { hostId, status, reason, lastHeartbeatAt, agentStatus, running = null, warns = [] } = row
  const { onDemand = null, linkFault = null, says = { onDemand, linkFault }, linkLostAt = null } = row
  return { hostId, status, reason, lastHeartbeatAt, agentStatus, greeting: running, says, linkLostAt, warns }
}

/** Empty if the file is missing or unreadable. */
export async function readKeptStatus(path: string, log: Log): Promise<readonly KeptStatus[]> {
  try {
    const kept: unknown = JSON.parse(await readFile(path, 'utf8'))
    if (!Array.isArray(kept)) throw new Error('it is not a list')
    return kept as KeptStatus[]
  } catch (error) {
    if (!isMissing(error))
      log.warn({ err: error }, 'the last known status of hosts is not readable; starting without it')
    return []
  }
}
