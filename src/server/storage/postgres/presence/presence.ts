import { setImmediate } from 'node:timers/promises'
import { BoundedMap } from '../../../../core/bounded-map.ts'
import type { Metrics } from '../../../../core/hosts/host.ts'
import { measuresNamed } from '../../../../core/hosts/host-status.ts'
import { Mutex } from '../../../../core/mutex.ts'
import { repeat } from '../../../../disk/clock.ts'
import type { Log } from '../../../../disk/log.ts'
import { createKnownHosts, type JudgingOptions } from '../../known-hosts.ts'
import type { Presence } from '../../ports/presence.ts'
import type { Database } from '../connection/database.ts'
import type { Channel } from '../hints/channel.ts'
import type { StoreHints } from '../hints/hints.ts'
import { decodeIds } from '../hints/lines.ts'
import type { Neighbours } from '../ownership/ownership.ts'
import { createLocal } from './local.ts'
import {
  type Fleet,
  forgetHeard,
  readHeard,
  readLinks,
  readListeningSince,
  readReports,
  readRows,
} from './patches.ts'
import { createRemote } from './remote.ts'

interface PresenceOptions extends JudgingOptions {
  database: Database
  channel: Channel
  hints: Pick<StoreHints, 'local'>
  neighbours: Neighbours
  log: Log
}

/** Milliseconds between two writes and between two reads. */
const syncEvery = 1_000
/** Milliseconds for which changes are collected before they are written. */
const gatherTime = 100
/** Milliseconds without a read after which this server counts as cut off. */
const readPatience = 10_000
const forgetEvery = 60_000
/** Maximum removed hosts whose late rows are ignored. */
const mostRemoved = 10_000
/** Kind of the hint that changes were written. */
const written = 'presence'

/** Retention of lists of heard hosts, in heartbeat intervals and milliseconds: servers must first judge silent hosts. */
const keptIntervals = 4
const keptAtLeast = 600_000

/**
 * Keeps the hosts of all servers in memory and judges them by this server's monotonic clock. Each second,
 * writes news of own agents to rsm.presence and reads what other servers wrote.
 */
export async function openPresence(options: PresenceOptions): Promise<Presence> {
  const { database, channel, neighbours, clock, log } = options
  // Each server judges for itself, so that its hints are only for this process.
  const hints = options.hints.local
  const startedAt = clock.monotonic()
  const heardRetention = Math.max(keptAtLeast, keptIntervals * options.heartbeatInterval * 1000)
  let forgotAt = startedAt
  let readAt = startedAt
  let cursors = { rows: 0, heard: 0 }
  let early: NodeJS.Timeout | null = null
  const mutex = new Mutex()

  const hosts = createKnownHosts({
    ...options,
    hints,
    changed: (hostId) => remote.isTaking || local.changed(hostId, ['standing', 'beat']),
    isCutOff: () => database.fault !== null || clock.monotonic() - readAt > readPatience,
  })
  const fleet: Fleet = {
    options,
    neighbours,
    hosts,
    links: new Map(),
    remote: new Set(),
    removed: new BoundedMap(mostRemoved),
  }
  const local = createLocal(fleet, database, () => {
    early ??= setTimeout(() => {
      early = null
      mutex.run(write).catch(failed)
    }, gatherTime).unref()
  })
  const remote = createRemote(fleet, hints, local)

  async function write(): Promise<void> {
    if (!(await local.write())) return
    channel.send([`${written} `]).catch(() => undefined)
  }

  async function read(server = neighbours.own() ?? 0): Promise<void> {
    const asked = clock.monotonic()
    const previous = cursors
    const next = { ...previous }
    // Read lists first: a list read later could hold a newer heartbeat, which would hide the change in a row.
    const lists = await readHeard(database, previous.heard, server)
    for await (const row of readRows(database, previous.rows)) {
      remote.row(row)
      next.rows = row.turn
    }
    for (const { turn, at, ids } of lists) {
      remote.heard(decodeIds(ids), at)
      next.heard = turn
      await setImmediate()
    }
    readAt = asked
    if (cursors === previous) cursors = next
  }

  /** Removes old lists, once this server has run long enough to judge hosts that fell silent before. */
  async function forget(): Promise<void> {
    const now = clock.monotonic()
    if (now - startedAt < heardRetention || now - forgotAt < forgetEvery) return
    forgotAt = now
    await forgetHeard(database, clock.now() - heardRetention)
  }

  const failed = (error: unknown) => log.debug({ err: error }, 'could not share presence with other servers')
  channel.hear(written, () => {
    if (mutex.queueLength === 0) mutex.run(() => read()).catch(failed)
  })
  // PostgreSQL may have been replaced: turns may restart.
  const end = channel.missed(() => {
    cursors = { rows: 0, heard: 0 }
  })
  await mutex.run(() => read(-1))
  // Take links that other servers have not written to rsm.presence yet.
  for (const { host_id: hostId, ...link } of await readLinks(database))
    remote.row({ hostId, patch: { link: { ...link, isUp: true, lostAt: null, fault: null } } })
  remote.begin(await readListeningSince(database))
  const sync = async () => {
    await write().catch(failed)
    await read()
    await forget()
  }
  const syncing = repeat(syncEvery, () => mutex.run(sync), failed)
  const readNewest = createReports(fleet, database, log)

  return {
    ...local,
    get revision() {
      return hosts.revision
    },
    get isReturning() {
      return hosts.isReturning
    },
    async views(hostIds) {
      await readNewest(hostIds)
      return hosts.views(hostIds)
    },
    standings: (hostIds) => hosts.standings(hostIds),
    async close() {
      hosts.close()
      remote.close()
      end()
      if (early) clearTimeout(early)
      await syncing.stop()
      await mutex
        .run(() => local.write())
        .catch((error: unknown) =>
          log.warn({ err: error }, 'the last known status of hosts could not be kept'),
        )
    },
  }
}

/** Milliseconds for which read reports are cached. */
const reportsKeptFor = 5_000
/** Maximum hosts whose reports are read: people view fewer, and code that judges more needs no reports. */
const maxReports = 1_000

/** Reads reports of hosts that another server heard last; keeps the known ones while the store is unreachable. */
function createReports({ hosts, remote, options }: Fleet, database: Database, log: Log) {
  const { clock } = options
  /** Monotonic milliseconds. */
  const readAt = new Map<number, number>()

  function take(hostId: number, at: number, text: string): void {
    const known = hosts.entries.get(hostId)
    if (!known || at <= known.metricsAt) return
    known.metrics = JSON.parse(text) as Metrics
    known.metricsAt = at
    known.high = measuresNamed(known.metrics, known.load.warns)
    hosts.judge(hostId)
  }

  return async (hostIds: readonly number[]): Promise<void> => {
    if (hostIds.length > maxReports) return
    const now = clock.monotonic()
    const old = hostIds.filter(
      (hostId) =>
        remote.has(hostId) && now - (readAt.get(hostId) ?? Number.NEGATIVE_INFINITY) >= reportsKeptFor,
    )
    if (old.length === 0) return
    for (const hostId of old) readAt.set(hostId, now)
    try {
      for (const { hostId, at, metrics } of await readReports(database, old)) take(hostId, at, metrics)
    } catch (error) {
      log.debug({ err: error }, 'the newest reports of hosts could not be read')
    }
  }
}
