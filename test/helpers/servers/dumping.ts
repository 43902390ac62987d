import type { ExecutionContext } from 'ava'
import type { Database } from '../../../src/server/storage/postgres/connection/database.ts'

/** Holds the locks that pg_dump holds on these tables while it runs; the returned function releases them. */
export async function dumping(
  t: ExecutionContext,
  database: Database,
  ...tables: readonly string[]
): Promise<() => Promise<void>> {
  const client = await database.connect(true)
  t.teardown(() => client.end())
  await client.query('set idle_in_transaction_session_timeout = 0')
  await client.query('begin')
  await client.query(`lock table ${tables.join(', ')} in access share mode`)
  return async () => void (await client.query('commit'))
}
