import type { Ask, Database, PoolName } from './database.ts'
import { missedLock } from './failure.ts'

/** Milliseconds: pg_dump holds its locks for as long as it runs, and who waits for a table keeps off all who come later. */
const patience = 1_000

/** A transaction that locks whole tables; undefined where another one holds one of them for longer: nothing is done then. */
export async function withBriefLocks<T>(
  database: Database,
  pool: PoolName,
  work: (ask: Ask) => Promise<T>,
): Promise<T | undefined> {
  try {
    return await database.transaction(pool, async (ask) => {
      await ask(`set local lock_timeout = ${patience}`)
      return work(ask)
    })
  } catch (error) {
    if (missedLock(error)) return undefined
    throw error
  }
}
