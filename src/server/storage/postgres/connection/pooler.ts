import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { refusedPooler } from './address.ts'
import type { Database } from './database.ts'

/** Milliseconds. */
const patience = 5_000
const channel = 'rsm_probe'

/** Whether `client` hears `payload` on the channel within `patience`. */
function hears(client: pg.Client, payload: string): Promise<boolean> {
  return new Promise((resolve) => {
    const late = setTimeout(() => resolve(false), patience)
    client.on('notification', (heard) => {
      if (heard.payload !== payload) return
      clearTimeout(late)
      resolve(true)
    })
  })
}

/**
 * Servers need sessions of their own: for locks that fall with them, and to hear of each other. A pooler such as pgbouncer, which
 * gives each transaction another session, forgets who listens.
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
    await listener.query(`listen ${channel}`)
    const token = randomBytes(9).toString('base64url')
    const heard = hears(listener, token)
    await (await connect()).query('select pg_notify($1, $2)', [channel, token])
    if (await heard) return
  } finally {
    await Promise.all(clients.map((client) => client.end()))
  }
  throw refusedPooler(database.address)
}
