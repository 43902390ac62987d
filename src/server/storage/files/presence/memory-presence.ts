import { noLoad } from '../../../../core/hosts/host-status.ts'
import { Mutex } from '../../../../core/mutex.ts'
import { isoTime } from '../../../../disk/clock.ts'
import type { Log } from '../../../../disk/log.ts'
import { noteReach } from '../../known-host.ts'
import { createKnownHosts, type JudgingOptions, type KnownHosts } from '../../known-hosts.ts'
import type { Hints } from '../../ports/hints.ts'
import type { Presence } from '../../ports/presence.ts'
import { type KeptStatus, lastKnownOf, readKeptStatus, saveStatus } from './kept-status.ts'

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
