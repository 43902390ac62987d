import { createLog } from '../../../../src/server/log.ts'
import { readStoreAddress } from '../../../../src/server/postgres/connection/address.ts'
import { createDatabase } from '../../../../src/server/postgres/connection/database.ts'
import {
  atExit,
  startPostgres,
  startStandby,
  postgresTest as test,
  urlOf,
} from '../../../helpers/servers/postgres.ts'
import { until } from '../../../helpers/until.ts'

test('of the hosts in the URL the one that takes writes is found, also after a standby was promoted', async (t) => {
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
  await t.throwsAsync(database.ask('api', 'select 1'), {
    code: 'unavailable',
    message: /standby or read-only/,
  })
  standby.promote()
  await until('the promoted standby is found', async () => {
    const rows = await database.ask<{ value: number }>('api', 'select value from kept').catch(() => [])
    return rows[0]?.value === 1
  })
  await database.ask('write', 'insert into kept values (2)')
  t.deepEqual(await database.ask('api', 'select value from kept order by 1'), [{ value: 1 }, { value: 2 }])
})
