import { createLog } from '../../../src/disk/log.ts'
import type { Database } from '../../../src/server/storage/postgres/connection/database.ts'
import { openPostgresStore, type PostgresStore } from '../../../src/server/storage/postgres/store/store.ts'
import { openDatabase } from './open-database.ts'

/** The store in a database, opened as server `name`; closed with the test. */
export async function openStore(
  t: { teardown: (end: () => Promise<void>) => void },
  url: string,
  name = 'a',
): Promise<{ store: PostgresStore; database: Database }> {
  const database = openDatabase(t, url, name)
  const store = await openPostgresStore({ database, log: createLog('ERROR') })
  t.teardown(() => store.close())
  return { store, database }
}
