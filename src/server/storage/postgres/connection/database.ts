import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { Log } from '../../../../disk/log.ts'
import type { PoolLoad } from '../../ports/cluster.ts'
import type { Place, StoreAddress } from './address.ts'
import { watchBackend } from './backend.ts'
import { Client, clientOptions, cut, endPatience, inTime, queryTimeout } from './client.ts'
import { createReach, isAway, isOfStatement, isToBeRepeated, missedLock, unavailable } from './failure.ts'
import { findPrimary } from './primary.ts'

/** Connections for what agents bring and plans decide, and for all else. With LISTEN and the lease that makes 13 a server. */
const sizes = { write: 3, api: 8 } as const
export type PoolName = keyof typeof sizes

/** Attempts of a transaction that conflicts with others. */
const mostRepeats = 50
/** Milliseconds, at most, between two of them. */
const longestPause = 20

/** Milliseconds: pg_dump holds its locks for as long as it runs, and a statement that waits for a table blocks all later ones. */
const lockPatience = 1_000

type Values = readonly unknown[]

/** A statement, prepared once on each connection under its name, which no other text may have. */
export interface Statement {
  readonly name: string
  readonly text: string
}

/** Asks one statement; answers its rows. */
export type Ask = <R extends object>(statement: Statement | string, values?: Values) => Promise<R[]>

/** With READ COMMITTED `work` locks what it decides on. */
export type Isolation = 'serializable' | 'read committed'

/**
 * PostgreSQL as the ports speak to it. Every call rejects with RsmError `unavailable` where it can't be reached, is a standby, or
 * answers too late: what was under way then may have been carried out, or not. Errors of a statement come as they are.
 */
export interface Database {
  readonly name: string
  readonly address: StoreAddress
  ask<R extends object>(pool: PoolName, statement: Statement | string, values?: Values): Promise<R[]>
  /**
   * One transaction, SERIALIZABLE unless said otherwise, so that it is as if they ran one after the other; `work` runs again
   * where another one came in between, and must leave no trace but by `ask`.
   */
  transaction<T>(pool: PoolName, work: (ask: Ask) => Promise<T>, isolation?: Isolation): Promise<T>
  /** A connection of one's own to the primary, which the caller ends. `isPatient`: its statements take as long as they take. */
  connect(isPatient?: boolean): Promise<pg.Client>
  /** Why the last call could not reach it; null when it could. */
  readonly fault: string | null
  /** The same without its address, for callers. */
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
        // `askInTime` waits.
        query_timeout: 0,
        max: size,
        idleTimeoutMillis: 60_000,
      })
      // An idle connection that breaks is replaced by the next call.
      pool.on('error', (error) => log.debug({ err: error }, 'a connection to the store broke'))
      // One that breaks in use fails its call; without a listener it would end the process as well.
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

  /** Makes the next call look for the primary again. */
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
      // Without a client no connection was made: PostgreSQL may refuse a changed password or database.
      const isGone = !isOfStatement(error) && (client === null || isAway(error))
      client?.release(isGone)
      if (!isGone) throw isOfStatement(error) ? unavailable(error) : error
      // What was asked over connections that are given up already says nothing of those that stand now.
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
        log.debug({ err: fault }, 'a connection to the store could not be made')
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

/** What a transaction came to: an error of `work` itself says nothing of the connection. */
type Outcome<T> = { value: T } | { error: unknown }

/** Rejects where PostgreSQL is at fault, not `work`. */
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
      // After a statement that failed PostgreSQL would answer `commit` with a rollback, and no error.
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

/** `fault`: the error of the first statement that failed, whatever was made of it. */
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

/** A transaction that locks whole tables; undefined where another one holds one of them for longer: nothing is done then. */
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
