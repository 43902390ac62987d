import { createLog } from '../../../src/disk/log.ts'
import { readStoreAddress } from '../../../src/server/storage/postgres/connection/address.ts'
import { createDatabase, type Database } from '../../../src/server/storage/postgres/connection/database.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'

const open = (url: string) => createDatabase(readStoreAddress(url, undefined), 'test', createLog('ERROR'))
const pidOf = async (database: Database) =>
  (await database.ask<{ pid: number }>('write', 'select pg_backend_pid() as pid'))[0]?.pid

test('a statement that runs or waits too long fails as unavailable, and all other calls keep their connections', async (t) => {
  const postgres = await sharedPostgres()
  const database = open(`${await postgres.database()}?connect_timeout=1`)
  t.teardown(() => database.close())
  const pid = await pidOf(database)
  const late = { code: 'unavailable', message: /^the store does not answer in time/ }
  const ended = database.transaction('api', async (ask) => {
    await ask('set local statement_timeout = 100')
    await ask('select pg_sleep(5)')
  })
  await t.throwsAsync(ended, late)
  const sleeping = Promise.all(Array.from({ length: 8 }, () => database.ask('api', 'select pg_sleep(3)')))
  await t.throwsAsync(database.ask('api', 'select 1'), late)
  await t.notThrowsAsync(sleeping)
  t.is(database.fault, null)
  t.is(await pidOf(database), pid)
})
