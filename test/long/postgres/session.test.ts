import { systemClock } from '../../../src/disk/clock.ts'
import { createLog } from '../../../src/disk/log.ts'
import { askInTime } from '../../../src/server/storage/postgres/connection/database.ts'
import { openSession } from '../../../src/server/storage/postgres/connection/session.ts'
import { openDatabase } from '../../helpers/servers/open-database.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'

const postgres = sharedPostgres()

test('a response that arrives while the process is suspended is accepted, however late it is read', async (t) => {
  const database = openDatabase(t, await (await postgres).database())
  const parts = { database, clock: systemClock, log: createLog('ERROR'), begin: async () => undefined }
  const session = await openSession({ ...parts, patience: 300 })
  t.teardown(() => session.close())
  const asked = session.ask<{ one: number }>('select 1 as one')
  // The query is sent before the process stalls.
  await new Promise((resolve) => setImmediate(resolve))
  const end = performance.now() + 600
  while (performance.now() < end);
  t.deepEqual(await asked, [{ one: 1 }])
  await t.throwsAsync(session.ask('select pg_sleep(5)'), { code: 'unavailable' })
})

test('a response to a pooled connection that arrives while the process is suspended does not count as late', async (t) => {
  const client = await openDatabase(t, await (await postgres).database()).connect(true)
  t.teardown(() => client.end())
  const ask = askInTime(client, 300)
  const asked = ask<{ text: string }>(`select repeat('x', 100000) as text`)
  // The query is sent before the process stalls.
  await new Promise((resolve) => setImmediate(resolve))
  const end = performance.now() + 600
  while (performance.now() < end);
  t.is((await asked)[0]?.text.length, 100_000)
  await t.throwsAsync(ask('select pg_sleep(3)'), { message: 'Query read timeout' })
})
