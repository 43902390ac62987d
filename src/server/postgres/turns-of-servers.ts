import type pg from 'pg'
import type { Data } from '../seams/data.ts'
import type { Database } from './connection/database.ts'

/** Any number that nothing else in this database locks, and what is locked under it. */
const turnLocks = 7_263_003
const turns = { housekeeping: 1, beginning: 2 } as const

/** What one server of the store does at a time: a lock that falls with its session, whatever becomes of this process. */
export function createServerTurns(database: Database): Pick<Data, 'alone' | 'inTurn'> {
  async function withSession<T>(work: (session: pg.Client) => Promise<T>): Promise<T> {
    const session = await database.connect(true)
    try {
      return await work(session)
    } finally {
      await session.end()
    }
  }

  return {
    alone: (work) =>
      withSession(async (session) => {
        const { rows } = await session.query<{ is_mine: boolean }>(
          'select pg_try_advisory_lock($1, $2) as is_mine',
          [turnLocks, turns.housekeeping],
        )
        if (rows[0]?.is_mine !== true) return false
        await work()
        return true
      }),
    inTurn: (work) =>
      withSession(async (session) => {
        await session.query('select pg_advisory_lock($1, $2)', [turnLocks, turns.beginning])
        return work()
      }),
  }
}
