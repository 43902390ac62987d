import type pg from 'pg'
import type { Log } from '../../../disk/log.ts'
import type { Cluster } from '../ports/cluster.ts'
import type { Hints } from '../ports/hints.ts'
import type { StoreClock } from './clock.ts'
import { displayAddress } from './connection/address.ts'
import type { Database } from './connection/database.ts'
import type { Channel } from './hints/channel.ts'
import { createLinks } from './links.ts'
import type { StoreOwnership } from './ownership/ownership.ts'

/** First key of advisory locks, unique in this database, and second keys. */
const lockSpace = 7_263_003
const locks = { housekeeping: 1, beginning: 2 } as const

interface Parts {
  readonly database: Database
  readonly channel: Channel
  readonly ownership: StoreOwnership
  readonly locks: Pick<Cluster, 'tryExclusive' | 'exclusive'>
  readonly hints: Hints
  readonly clock: StoreClock
  readonly log: Log
}

/** Does not close `ownership`; its opener does. */
export function createCluster(parts: Parts): Cluster & { close(): Promise<void> } {
  const { database, channel, ownership, locks } = parts
  const links = createLinks(parts)
  return {
    ...locks,
    shared: {
      address: displayAddress(database.address),
      get fault() {
        return database.fault ?? ownership.fault
      },
      load: () => database.load(),
      hearing: () => channel.hearing(),
      servers: () => ownership.servers(),
      listensAt: (address, endpoint) => ownership.listensAt(address, endpoint),
      peers: () => ownership.peers(),
      neighbours: ownership.neighbours,
    },
    ownership,
    links,
    async close() {
      links.close()
    },
  }
}

/** Runs work on one server of the store at a time, under a lock that is released with its session. */
export function createServerLocks(database: Database): Pick<Cluster, 'tryExclusive' | 'exclusive'> {
  async function withSession<T>(work: (session: pg.Client) => Promise<T>): Promise<T> {
    const session = await database.connect(true)
    try {
      return await work(session)
    } finally {
      await session.end()
    }
  }

  return {
    tryExclusive: (work) =>
      withSession(async (session) => {
        const { rows } = await session.query<{ is_mine: boolean }>(
          'select pg_try_advisory_lock($1, $2) as is_mine',
          [lockSpace, locks.housekeeping],
        )
        if (rows[0]?.is_mine !== true) return false
        await work()
        return true
      }),
    exclusive: (work) =>
      withSession(async (session) => {
        await session.query('select pg_advisory_lock($1, $2)', [lockSpace, locks.beginning])
        return work()
      }),
  }
}
