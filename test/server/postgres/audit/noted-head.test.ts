import { systemClock } from '../../../../src/server/clock.ts'
import { createLog } from '../../../../src/server/log.ts'
import { openAuditLog } from '../../../../src/server/postgres/audit/audit-log.ts'
import { createNotedHead } from '../../../../src/server/postgres/audit/noted-head.ts'
import { event } from '../../../helpers/audit/audit-log.ts'
import { openDatabase } from '../../../helpers/servers/open-database.ts'
import { atExit, startPostgres, postgresTest as test } from '../../../helpers/servers/postgres.ts'

const postgres = startPostgres(atExit)

test('S11 a log that has lost or changed what was noted of it is told from one that has it all', async (t) => {
  const database = openDatabase(t, await (await postgres).database())
  const options = { database, storeId: 'store-1', clock: systemClock, log: createLog('ERROR') }
  const audit = await openAuditLog(options)
  const noted = createNotedHead(database, audit)
  t.is(await noted.missing(), null)
  for (let n = 0; n < 5; n++) await audit.append(event('a'))
  await noted.note()
  const { hash } = await audit.head()
  t.is(await noted.missing(), null)
  await audit.append(event('by another server'))
  t.is(await noted.missing(), null)

  await database.ask('api', 'delete from rsm.audit where id > 4')
  t.is(await noted.missing(), `the audit log ends at entry 4, the head noted was 6:${hash}`)
  await database.ask(
    'api',
    `insert into rsm.audit(id, line) select 6, replace(line, '"id":4', '"id":6') from rsm.audit where id = 4`,
  )
  t.is(await noted.missing(), `entry 6 of the audit log is not the one noted as 6:${hash}`)
  await database.ask('api', 'delete from rsm.audit')
  t.is(await noted.missing(), `the audit log ends at entry 0, the head noted was 6:${hash}`)
  await noted.note()
  t.regex((await noted.missing()) ?? '', /the head noted was 7:/)
})
