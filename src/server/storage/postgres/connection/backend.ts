import type pg from 'pg'
import { repeat } from '../../../../disk/clock.ts'
import { cut, inTime, queryTimeout } from './client.ts'

/** Milliseconds between two checks of a backend. */
const checkInterval = 10_000
/** Checks in a row that may fail before the cut, because PostgreSQL may come back and the statement continue. */
const mostMissed = 3

interface OtherConnections {
  ask(pool: 'api', statement: string, values: readonly unknown[]): Promise<object[]>
  readonly fault: string | null
}

/**
 * Cuts a connection whose backend is gone, which TCP does not report behind a cut network. Guards statements without a timeout.
 * Checks over another connection, because a backend answers one statement at a time.
 */
export async function watchBackend(
  client: pg.Client,
  database: OtherConnections,
  every = checkInterval,
): Promise<void> {
  const asked = client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const pid = (await inTime(queryTimeout, asked)).rows[0]?.pid
  let missed = 0

  async function check(): Promise<void> {
    const found = await database.ask('api', 'select from pg_stat_activity where pid = $1', [pid])
    missed = 0
    if (found.length === 0) cut(client)
  }
  const checks = repeat(every, check, () => {
    // A late answer proves nothing about the connection.
    if (database.fault !== null && ++missed >= mostMissed) cut(client)
  })
  client.once('end', () => void checks.stop())
}
