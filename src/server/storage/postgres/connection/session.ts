import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { Mutex } from '../../../../core/mutex.ts'
import type { Clock } from '../../../../disk/clock.ts'
import type { Log } from '../../../../disk/log.ts'
import { refusedPooler } from './address.ts'
import { afterReading, cut } from './client.ts'
import { type Ask, askOf, type Database } from './database.ts'
import { isAway, unavailable } from './failure.ts'

/** Milliseconds between attempts to reconnect. */
const pauses = { first: 50, most: 250 }

/** A dedicated connection that reconnects when it breaks: for state of a session, such as locks and LISTEN. */
export interface Session {
  /** Rejects with `unavailable` while there is no connection, or if the answer is late: then it reconnects. */
  ask: Ask
  /** Age of the current connection in milliseconds; 0 if there is none. */
  age(): number
  /** Drops a connection that no longer answers. */
  drop(): void
  close(): Promise<void>
}

interface SessionOptions {
  database: Database
  clock: Pick<Clock, 'monotonic'>
  log: Log
  /** Milliseconds to wait for an answer. */
  patience: number
  /** Prepares each new connection before its first use. */
  begin: (ask: Ask, client: pg.Client) => Promise<void>
}

interface Connection {
  client: pg.Client
  ask: Ask
  since: number
  gone: Promise<void>
}

/** Rejects if the first connection fails. */
export async function openSession(options: SessionOptions): Promise<Session> {
  const { clock, log } = options
  const closing = new AbortController()
  let current: Connection | null = await connect(options)

  async function connectAgain(): Promise<Connection | null> {
    for (let pause = pauses.first; !closing.signal.aborted; pause = Math.min(2 * pause, pauses.most))
      try {
        return await connect(options)
      } catch (error) {
        log.debug({ err: error }, 'could not reconnect to the store')
        await delay(pause, undefined, { ref: false, signal: closing.signal }).catch(() => undefined)
      }
    return null
  }

  async function keepConnected(): Promise<void> {
    while (current !== null) {
      await current.gone
      current = null
      current = await connectAgain()
      if (closing.signal.aborted && current) void current.client.end()
    }
  }
  const kept = keepConnected()

  return {
    async ask(statement, values) {
      if (current === null) throw unavailable(new Error('reconnecting'))
      return current.ask(statement, values)
    },
    age: () => (current === null ? 0 : clock.monotonic() - current.since),
    drop() {
      if (current) cut(current.client)
    },
    async close() {
      closing.abort()
      if (current) await current.client.end()
      await kept
    },
  }
}

async function connect({ database, clock, patience, begin }: SessionOptions): Promise<Connection> {
  const client = await database.connect()
  const gone = new Promise<void>((resolve) => client.once('end', resolve))
  const ask = patient(client, patience)
  try {
    await begin(ask, client)
  } catch (error) {
    cut(client)
    throw error
  }
  return { client, ask, since: clock.monotonic(), gone }
}

/** Runs one statement at a time; cuts the connection if an answer takes longer than `patience` milliseconds. */
function patient(client: pg.Client, patience: number): Ask {
  const statements = new Mutex()

  async function ask<R extends object>(...asked: Parameters<Ask>): Promise<R[]> {
    const endWaiting = afterReading(patience, () => cut(client))
    try {
      return await askOf(client)<R>(...asked)
    } catch (error) {
      throw isAway(error) ? unavailable(error) : error
    } finally {
      endWaiting()
    }
  }
  return <R extends object>(...asked: Parameters<Ask>) => statements.run(() => ask<R>(...asked))
}

/** Milliseconds to wait for a notification. */
const probePatience = 5_000
const probeChannel = 'rsm_probe'

/** Whether `client` receives the notification within `probePatience`. */
function hears(client: pg.Client, payload: string): Promise<boolean> {
  return new Promise((resolve) => {
    const late = setTimeout(() => resolve(false), probePatience)
    client.on('notification', (heard) => {
      if (heard.payload !== payload) return
      clearTimeout(late)
      resolve(true)
    })
  })
}

/**
 * Refuses a pooler such as pgbouncer that gives each transaction another session. Servers need their own, for
 * LISTEN and for locks that end with it.
 * @throws RsmError `unavailable`
 */
export async function refusePooler(database: Database): Promise<void> {
  const clients: pg.Client[] = []
  const connect = async () => {
    const client = await database.connect()
    clients.push(client)
    return client
  }
  try {
    const listener = await connect()
    await listener.query(`listen ${probeChannel}`)
    const token = randomBytes(9).toString('base64url')
    const heard = hears(listener, token)
    await (await connect()).query('select pg_notify($1, $2)', [probeChannel, token])
    if (await heard) return
  } finally {
    await Promise.all(clients.map((client) => client.end()))
  }
  throw refusedPooler(database.address)
}
