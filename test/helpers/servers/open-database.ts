import { createLog } from '../../../src/disk/log.ts'
import { createDatabase, type Database } from '../../../src/server/storage/postgres/connection/database.ts'
import { patientAddress } from './patient-address.ts'

/** Connections of a server `name` to a database; closed with the test. */
export function openDatabase(
  t: { teardown: (end: () => Promise<void>) => void },
  url: string,
  name = 'a',
): Database {
  const database = createDatabase(patientAddress(url), name, createLog('ERROR'))
  t.teardown(() => database.close())
  return database
}
