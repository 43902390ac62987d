import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { Log } from '../../../../disk/log.ts'
import type { PoolLoad } from '../../ports/cluster.ts'
import type { Place, StoreAddress } from './address.ts'
import {
  Client,
  clientOptions,
  cut,
  endPatience,
  findPrimary,
  inTime,
  queryTimeout,
  watchBackend,
} from './client.ts'
import { createReach, isAway, isOfStatement, isToBeRepeated, missedLock, unavailable } from './failure.ts'

/**
 * Connections by pool: `write` for data of agents and decisions of plans, `api` for the rest. With LISTEN and
 * the lease, a server has 13.
 */
const sizes = { write: 3, api: 8 } as const
export type PoolName = keyof typeof sizes

/** Maximum attempts of a transaction that conflicts with others. */
const mostRepeats = 50
/** Maximum milliseconds between two attempts. */
const longestPause = 20

/**
 * Milliseconds to wait for a table lock: pg_dump holds its locks while it runs, and a waiting statement
 * blocks all later ones.
 */
const lockPatience = 1_000

type Values = readonly unknown[]

/** A statement, prepared once per connection under its name. A name must always have the same text. */
export interface Statement {
  readonly name: string
  readonly text: string
}

export type Ask = <R extends object>(statement: Statement | string, values?: Values) => Promise<R[]>

/** With READ COMMITTED, `work` must lock the rows that it decides on. */
export type Isolation = 'serializable' | 'read committed'

/**
 * PostgreSQL for the ports. Calls reject with RsmError `unavailable` if it is unreachable, a standby, or too
 * slow. Statements in flight may or may not have been executed. Other errors of statements are passed on
 * unchanged.
 */
export interface Database {
  readonly name: string
  readonly address: StoreAddress
  ask<R extends object>(pool: PoolName, statement: Statement | string, values?: Values): Promise<R[]>
  /**
   * Runs a transaction, SERIALIZABLE by default. `work` runs again after a conflict, so it must have no effects
   * except through `ask`.
   */
  transaction<T>(pool: PoolName, work: (ask: Ask) => Promise<T>, isolation?: Isolation): Promise<T>
  /** Opens a dedicated connection to the primary, which the caller ends. `isPatient`: statements have no timeout. */
  connect(isPatient?: boolean): Promise<pg.Client>
  /** Why the last call could not reach PostgreSQL; null if it did. */
  readonly fault: string | null
  /** The same without the address, for callers. */
  readonly refusal: string | null
  load(): Record<PoolName, PoolLoad>
  close(): Promise<void>
}

interface Pools {
  place: Place
  pools: Record<PoolName, pg.Pool>
}

export function createDatabase(address: StoreAddress, name: string, log: Log): Database {
  let finding: Promise<Pools> | null = null
  let current: Pools | null = null
  const reach = createReach(log)
  const clients = new Set<pg.Client>()
  let isClosed = false

  async function open(): Promise<Pools> {
    const place = await inTime(
      address.connectTimeout + queryTimeout + endPatience,
      findPrimary(address, name),
    )
    const poolOf = (size: number) => {
      const pool = new pg.Pool({
        ...clientOptions(address, place, name),
        Client,
        // `askInTime` has its own timeout.
        query_timeout: 0,
        max: size,
        idleTimeoutMillis: 60_000,
      })
      // An idle connection that breaks is replaced by the next call.
      pool.on('error', (error) => log.debug({ err: error }, 'a connection to the store broke'))
      // A connection that breaks in use fails its call; without a listener it would also end the process.
      pool.on('connect', (client) => {
        client.on('error', () => undefined)
        clients.add(client)
        client.once('end', () => clients.delete(client))
      })
      return pool
    }
    current = { place, pools: { write: poolOf(sizes.write), api: poolOf(sizes.api) } }
    return current
  }

  function pools(): Promise<Pools> {
    finding ??= open().catch((error: unknown) => {
      finding = null
      throw error
    })
    return finding
  }

  /** Drops the pools, so that the next call looks for the primary again. */
  function dropPools(from: Pools | null): void {
    if (from === null || current !== from) return
    current = null
    finding = null
    for (const pool of Object.values(from.pools)) void pool.end().catch(() => undefined)
  }

  async function use<T>(pool: PoolName, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    if (isClosed) throw unavailable(new Error('the connection is closed'))
    let from: Pools | null = null
    let client: pg.PoolClient | null = null
    try {
      from = await pools()
      client = await from.pools[pool].connect()
      const value = await work(client)
      client.release()
      if (from === current) reach.reached()
      return value
    } catch (error) {
      // Without a client, connecting failed: PostgreSQL may refuse a changed password or database.
      const isGone = !isOfStatement(error) && (client === null || isAway(error))
      client?.release(isGone)
      if (!isGone) throw isOfStatement(error) ? unavailable(error) : error
      // An error of connections that were already dropped says nothing about the current ones.
      const isNews = from === null || from === current
      dropPools(from)
      throw reach.missed(unavailable(error), isNews)
    }
  }

  async function connectApart(isPatient: boolean): Promise<pg.Client> {
    const { place } = await pools()
    const client = new Client(clientOptions(address, place, name, isPatient))
    // Without a listener a broken connection would end the process.
    client.on('error', () => undefined)
    try {
      await client.connect()
      if (isPatient) await watchBackend(client, database)
    } catch (error) {
      void client.end()
      dropPools(current)
      throw error
    }
    return client
  }

  const database: Database = {
    name,
    address,
    ask: (pool, statement, values = []) => use(pool, (client) => askInTime(client)(statement, values)),
    async transaction(pool, work, isolation = 'serializable') {
      const outcome = await use(pool, (client) => outcomeOf(client, work, isolation))
      if ('error' in outcome) throw outcome.error
      return outcome.value
    },
    async connect(isPatient = false) {
      try {
        return await connectApart(isPatient)
      } catch (error) {
        const fault = unavailable(error)
        log.debug({ err: fault }, 'could not connect to the store')
        throw reach.redact(fault)
      }
    },
    get fault() {
      return reach.fault
    },
    get refusal() {
      return reach.refusal
    },
    load() {
      const of = (pool: PoolName) => {
        const its = current?.pools[pool]
        const busy = (its?.totalCount ?? 0) - (its?.idleCount ?? 0)
        return { size: sizes[pool], busy, waiting: its?.waitingCount ?? 0 }
      }
      return { write: of('write'), api: of('api') }
    },
    async close() {
      isClosed = true
      const last = current
      if (!last) return
      // Lets running statements finish, but does not wait for calls that never do.
      const ended = Promise.all(Object.values(last.pools).map((pool) => pool.end()))
      await inTime(queryTimeout, ended).catch(() => clients.forEach(cut))
    },
  }
  return database
}

export const askOf =
  (client: pg.ClientBase): Ask =>
  async <R extends object>(statement: Statement | string, values: Values = []) => {
    const query = typeof statement === 'string' ? { text: statement } : statement
    return (await client.query<R>({ ...query, values: [...values] })).rows
  }

export const askInTime =
  (client: pg.ClientBase, patience = queryTimeout): Ask =>
  <R extends object>(...asked: Parameters<Ask>) =>
    inTime(patience, askOf(client)<R>(...asked))

/** Result of a transaction: an error of `work` itself says nothing about the connection. */
type Outcome<T> = { value: T } | { error: unknown }

/** Rejects only if PostgreSQL is at fault, not `work`. */
async function outcomeOf<T>(
  client: pg.ClientBase,
  work: (ask: Ask) => Promise<T>,
  isolation: Isolation,
): Promise<Outcome<T>> {
  for (let attempt = 1; ; attempt++) {
    const { ask, fault } = noting(askInTime(client))
    try {
      await ask(`begin isolation level ${isolation}`)
      const value = await work(ask)
      // After a failed statement PostgreSQL answers `commit` with a rollback, and no error.
      if (fault() !== null) throw fault()
      await ask('commit')
      return { value }
    } catch (error) {
      const failed = fault()
      if (isAway(failed) && !isOfStatement(failed)) throw failed
      await askInTime(client)('rollback')
      if (isOfStatement(failed)) return { error: unavailable(failed) }
      if (!isToBeRepeated(failed)) return { error }
      if (attempt >= mostRepeats) return { error: unavailable(failed) }
      await pause(Math.random() * Math.min(attempt, longestPause))
    }
  }
}

/** `fault`: the error of the first failed statement, even if `work` caught it. */
function noting(ask: Ask): { ask: Ask; fault: () => unknown } {
  let first: unknown = null
  const noted: Ask = async (statement, values) => {
    try {
      return await ask(statement, values)
    } catch (error) {
      first ??= error
      throw error
    }
  }
  return { ask: noted, fault: () => first }
}

/** Runs a transaction that locks tables. Does nothing and resolves to undefined if a lock is not free in time. */
export async function withBriefLocks<T>(
  database: Database,
  pool: PoolName,
  work: (ask: Ask) => Promise<T>,
): Promise<T | undefined> {
  try {
    return await database.transaction(pool, async (ask) => {
      await ask(`set local lock_timeout = ${lockPatience}`)
      return work(ask)
    })
  } catch (error) {
    if (missedLock(error)) return undefined
    throw error
  }
}
