import type pg from 'pg'
import { inTime } from './after-reading.ts'
import { cut, queryTimeout } from './client.ts'
import type { Database } from './database.ts'

/** Milliseconds between two looks at a backend. */
const lookEvery = 10_000
/** Looks in a row that do not reach PostgreSQL: it may come back, and the statement go on. */
const mostMissed = 3

/**
 * Cuts a connection whose backend is gone, as TCP does not tell behind a cut network: for statements without a timeout. Another
 * connection looks, as PostgreSQL answers one statement at a time.
 */
export async function watchBackend(
  client: pg.Client,
  database: Pick<Database, 'ask' | 'fault'>,
  every = lookEvery,
): Promise<void> {
  const asked = client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const pid = (await inTime(queryTimeout, asked)).rows[0]?.pid
  let missed = 0
  let isLooking = false

  async function look(): Promise<void> {
    if (isLooking) return
    isLooking = true
    try {
      const found = await database.ask('api', 'select from pg_stat_activity where pid = $1', [pid])
      missed = 0
      if (found.length === 0) cut(client)
    } catch {
      // A call that is late says nothing of the connection.
      if (database.fault !== null && ++missed >= mostMissed) cut(client)
    } finally {
      isLooking = false
    }
  }
  const timer = setInterval(() => void look(), every).unref()
  client.once('end', () => clearInterval(timer))
}
