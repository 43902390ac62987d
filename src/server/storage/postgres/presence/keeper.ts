import { setImmediate } from 'node:timers/promises'
import { Mutex } from '../../../../core/mutex.ts'
import { type Clock, repeat } from '../../../../disk/clock.ts'
import type { Log } from '../../../../disk/log.ts'
import type { Database } from '../connection/database.ts'
import { decodeIds, encodeIds } from '../hints/lines.ts'
import type { LinkSign } from './signs.ts'
import {
  type Flush,
  forgetHeard,
  type KeptHost,
  type LinkRow,
  readHeard,
  readHosts,
  readLinks,
  writeFlush,
  writtenWithin,
} from './table.ts'

/** Milliseconds. */
const flushEvery = 5_000
const forgetEvery = 60_000
/** Milliseconds between reads that make up for lost hints. */
const readEvery = 60_000

interface KeeperOptions {
  database: Database
  clock: Clock
  log: Log
  /** Milliseconds for which lists of who was heard are kept. */
  keepHeard: number
  /** Epoch of this server; 0 before it has joined. */
  server: () => number
  /** What is to be written of a host; null where nothing is known. */
  keptOf: (hostId: number) => Omit<KeptHost, 'at'> | null
  reportOf: (hostId: number) => Flush['reports'][number] | null
  links: () => ReadonlyMap<number, LinkSign>
  /** Whether the table has to be read, as the others are not heard. */
  isDeaf: () => boolean
}

/** What is read from the tables. */
export interface KeeperListener {
  kept(host: KeptHost): void
  linked(rows: readonly LinkRow[]): void
  heard(hostIds: readonly number[], at: number): void
}

/** What servers keep of hosts for those that start, and for those whom nothing was told. */
export interface Keeper {
  heard(hostId: number): void
  changed(hostId: number): void
  reported(hostId: number): void
  gone(hostId: number): void
  /** Reads what was written since it was read last; the first time all of it. */
  read(): Promise<void>
  /** Something may have been lost: reads now, and once what others have just heard is written. */
  readTwice(): void
  /** When it was last read, monotonic. */
  readTo(): number
  close(): Promise<void>
}

export function createKeeper(options: KeeperOptions, listener: KeeperListener): Keeper {
  const { database, clock, log, keepHeard, server, keptOf, reportOf } = options
  const startedAt = clock.monotonic()
  let heard = new Set<number>()
  let changed = new Set<number>()
  let reported = new Set<number>()
  let gone = new Set<number>()
  /** The store's time; null before the first. */
  let readTo: number | null = null
  let readAt = Number.NEGATIVE_INFINITY
  let forgotAt = startedAt
  const mutex = new Mutex()
  /** Reads to come; two after a start, because other servers may flush late what they published before it. */
  let readsLeft = 2

  async function flush(): Promise<void> {
    const batch = { heard, changed, reported, gone }
    heard = new Set()
    changed = new Set()
    reported = new Set()
    gone = new Set()
    if (Object.values(batch).every(({ size }) => size === 0)) return
    const present = <T>(values: (T | null)[]) => values.filter((value): value is T => value !== null)
    try {
      await writeFlush(database, {
        at: clock.now(),
        server: server(),
        hosts: present([...batch.changed].map(keptOf)),
        gone: [...batch.gone],
        heard: encodeIds(batch.heard),
        reports: present([...batch.reported].map(reportOf)),
      })
    } catch (error) {
      // Retries as rows with the time of each heartbeat; a later list would postdate them.
      for (const hostId of [...batch.changed, ...batch.heard]) changed.add(hostId)
      for (const hostId of batch.reported) reported.add(hostId)
      for (const hostId of batch.gone) gone.add(hostId)
      throw error
    }
  }

  /** A server that has run for so long has judged, and written, who fell silent before. */
  async function forget(): Promise<void> {
    const now = clock.monotonic()
    if (now - startedAt < keepHeard || now - forgotAt < forgetEvery) return
    forgotAt = now
    await forgetHeard(database, clock.now() - keepHeard)
  }

  async function read(): Promise<void> {
    const asked = clock.monotonic()
    const to = clock.now()
    const since = readTo === null ? 0 : readTo - writtenWithin
    for await (const hosts of readHosts(database, since)) for (const host of hosts) listener.kept(host)
    listener.linked(await readLinks(database, options.links()))
    for (const { ids, at } of await readHeard(database, since)) {
      listener.heard(decodeIds(ids), at)
      await setImmediate()
    }
    readTo = to
    readAt = asked
  }

  async function tick(): Promise<void> {
    await flush()
    if (readsLeft > 0 || options.isDeaf() || clock.monotonic() - readAt >= readEvery) {
      readsLeft = Math.max(0, readsLeft - 1)
      await read()
    }
    await forget()
  }

  const ticking = repeat(
    flushEvery,
    () => mutex.run(tick),
    (error) => log.debug({ err: error }, 'what is known of hosts could not be kept'),
  )

  return {
    heard: (hostId) => void heard.add(hostId),
    changed: (hostId) => void changed.add(hostId),
    reported: (hostId) => void reported.add(hostId),
    gone(hostId) {
      for (const set of [heard, changed, reported]) set.delete(hostId)
      gone.add(hostId)
    },
    read: () => mutex.run(read),
    readTwice() {
      readsLeft = 2
      void ticking.now()
    },
    readTo: () => readAt,
    async close() {
      await ticking.stop()
      await mutex
        .run(flush)
        .catch((error: unknown) =>
          log.warn({ err: error }, 'the last known status of hosts could not be kept'),
        )
    },
  }
}
