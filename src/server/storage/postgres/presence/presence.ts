import type { Metrics } from '../../../../core/hosts/host.ts'
import { measuresNamed } from '../../../../core/hosts/host-status.ts'
import type { Log } from '../../../../disk/log.ts'
import type { Presence } from '../../ports/presence.ts'
import { createKnownHosts, type JudgingOptions } from '../../presence/known-hosts.ts'
import type { Database } from '../connection/database.ts'
import type { Channel } from '../hints/channel.ts'
import type { StoreHints } from '../hints/hints.ts'
import type { Neighbours } from '../ownership/ownership.ts'
import { createElsewhere } from './elsewhere.ts'
import { createDeafness, createFeed } from './feed.ts'
import { type Fleet, HostLinks, keptOf, reportOf, toldOf } from './fleet.ts'
import { createHere } from './here.ts'
import { createKeeper } from './keeper.ts'
import { readListeningSince, readReports } from './table.ts'

interface PresenceOptions extends JudgingOptions {
  database: Database
  channel: Channel
  hints: Pick<StoreHints, 'local'>
  neighbours: Neighbours
  log: Log
}

/** Lists of who was heard are kept until each server has judged, and written, who has fallen silent since. */
const keptIntervals = 4
const keptAtLeast = 600_000

/**
 * All hosts in the memory of each server, which judges them by its own monotonic clock. Servers tell each other who was heard
 * and what has changed; tables keep it for those that start, and for those that did not hear the others for a while.
 */
export async function openPresence(options: PresenceOptions): Promise<Presence> {
  const { database, channel, neighbours, clock, log } = options
  // Each server sees by itself what follows, and tells it within.
  const hints = options.hints.local
  const hosts = createKnownHosts({
    ...options,
    hints,
    changed: (hostId) => elsewhere.isTaking || keeper.changed(hostId),
    deafTime: () => deafness.time(),
    isCutOff: () => database.fault !== null,
  })
  const fleet: Fleet = {
    options,
    neighbours,
    hosts,
    links: new HostLinks(neighbours),
    listeningSince: await readListeningSince(database),
    elsewhere: new Set(),
    changedAt: new Map(),
  }
  const elsewhere = createElsewhere(fleet, hints, {
    unread: () => keeper.readTwice(),
    changed: (hostId) => keeper.changed(hostId),
  })
  const feed = createFeed(
    { channel, neighbours, clock, signs: (hostId, of) => toldOf(fleet, hostId, of) },
    elsewhere,
  )
  const keeper = createKeeper(
    {
      database,
      clock,
      log,
      keepHeard: Math.max(keptAtLeast, keptIntervals * options.heartbeatInterval * 1000),
      server: () => neighbours.own() ?? 0,
      keptOf: (hostId) => keptOf(fleet, hostId),
      reportOf: (hostId) => reportOf(fleet, hostId),
      links: () => fleet.links.all(),
      isDeaf: () => deafness.isDeaf(),
    },
    elsewhere,
  )
  const deafness = createDeafness(clock, { heardTo: () => feed.heardTo(), readTo: () => keeper.readTo() })
  const reports = createReports(fleet, database, log)
  const end = channel.missed(() => keeper.readTwice())
  await keeper.read()
  elsewhere.begun()

  return {
    ...createHere(fleet, feed, keeper),
    get revision() {
      return hosts.revision
    },
    get isReturning() {
      return hosts.isReturning
    },
    async views(hostIds) {
      await reports.read(hostIds)
      return hosts.views(hostIds)
    },
    standings: (hostIds) => hosts.standings(hostIds),
    async close() {
      hosts.close()
      feed.close()
      elsewhere.close()
      end()
      await keeper.close()
    },
  }
}

/** Milliseconds for which read reports are cached: other servers write them as often. */
const reportsKeptFor = 5_000
/** Hosts whose reports are read at once: people look at no more, and code that judges more needs no reports. */
const mostReports = 1_000

/** The newest reports of hosts that bring theirs to other servers. */
interface Reports {
  /** Reads those of these hosts that may be newer elsewhere; where the store is away, what is known stays. */
  read(hostIds: readonly number[]): Promise<void>
}

function createReports({ hosts, elsewhere, options }: Fleet, database: Database, log: Log): Reports {
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

  return {
    async read(hostIds) {
      if (hostIds.length > mostReports) return
      const now = clock.monotonic()
      const old = hostIds.filter(
        (hostId) =>
          elsewhere.has(hostId) && now - (readAt.get(hostId) ?? Number.NEGATIVE_INFINITY) >= reportsKeptFor,
      )
      if (old.length === 0) return
      for (const hostId of old) readAt.set(hostId, now)
      try {
        for (const { hostId, at, metrics } of await readReports(database, old)) take(hostId, at, metrics)
      } catch (error) {
        log.debug({ err: error }, 'the newest reports of hosts could not be read')
      }
    },
  }
}
