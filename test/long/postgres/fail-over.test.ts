import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { createLog } from '../../../src/disk/log.ts'
import { readStoreAddress } from '../../../src/server/storage/postgres/connection/address.ts'
import { findPrimary } from '../../../src/server/storage/postgres/connection/client.ts'
import { createDatabase } from '../../../src/server/storage/postgres/connection/database.ts'
import {
  atExit,
  startPostgres,
  startStandby,
  postgresTest as test,
  urlOf,
} from '../../helpers/servers/postgres.ts'
import { until } from '../../helpers/until.ts'

test('F26 an unresponsive host does not block the next one, and the first of two that accept writes is used', async (t) => {
  const [first, second] = [await startPostgres(atExit), await startPostgres(atExit)]
  await Promise.all([first.database(), second.database()])
  const silent = createServer(() => undefined).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => silent.close())
  const { port } = silent.address() as AddressInfo
  const url = `${urlOf([{ port }, first, second], 'rsm_1')}?connect_timeout=60`
  const began = performance.now()
  t.is((await findPrimary(readStoreAddress(url, undefined), 'test')).port, first.port)
  t.true(performance.now() - began < 30_000)
})

test('F26 a server finds the host in the URL that accepts writes, also after a standby was promoted', async (t) => {
  const primary = await startPostgres(atExit)
  await primary.database()
  const standby = await startStandby(atExit, primary, { synchronous: true })
  const database = createDatabase(
    readStoreAddress(urlOf([standby, primary], 'rsm_1'), undefined),
    'test',
    createLog('ERROR'),
  )
  t.teardown(() => database.close())
  await database.ask('api', 'create table kept(value int)')
  await database.ask('api', 'insert into kept values (1)')
  primary.stop('immediate')
  await t.throwsAsync(database.ask('api', 'select 1'), { code: 'unavailable' })
  await t.throwsAsync(database.ask('api', 'select 1'), { code: 'unavailable' })
  t.regex(database.fault ?? '', /standby or read-only/)
  standby.promote()
  await until('the promoted standby is found', async () => {
    const rows = await database.ask<{ value: number }>('api', 'select value from kept').catch(() => [])
    return rows[0]?.value === 1
  })
  await database.ask('write', 'insert into kept values (2)')
  t.deepEqual(await database.ask('api', 'select value from kept order by 1'), [{ value: 1 }, { value: 2 }])
})
