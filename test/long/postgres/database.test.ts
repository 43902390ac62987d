import { createLog } from '../../../src/disk/log.ts'
import { readStoreAddress } from '../../../src/server/storage/postgres/connection/address.ts'
import { createDatabase } from '../../../src/server/storage/postgres/connection/database.ts'
import { knownSchema, migrate } from '../../../src/server/storage/postgres/schema/migrations.ts'
import {
  atExit,
  sharedPostgres,
  startPostgres,
  postgresTest as test,
} from '../../helpers/servers/postgres.ts'

const open = (url: string) => createDatabase(readStoreAddress(url, undefined), 'test', createLog('ERROR'))

test('servers that start at once create the schema once; a server that is too old or too new for it refuses to start', async (t) => {
  const postgres = await sharedPostgres()
  const url = await postgres.database({ migrated: false })
  const servers = [open(url), open(url), open(url)]
  t.teardown(() => Promise.all(servers.map((server) => server.close())))
  await Promise.all(servers.map((server) => migrate(server)))
  const [database] = servers
  if (!database) throw new Error('no server')
  t.deepEqual(await database.ask('api', 'select schema from rsm.cluster'), [{ schema: knownSchema() }])
  await database.ask('api', 'update rsm.cluster set schema = 99, oldest_server = 98')
  await t.throwsAsync(migrate(database), { message: /schema is number 99, of a newer rsm/ })
  await database.ask('api', 'update rsm.cluster set schema = 8, oldest_server = 8')
  await t.throwsAsync(migrate(database), {
    code: 'conflict',
    message: /schema is number 8, of an older rsm; this one knows 9 and newer/,
  })
})

test('a transaction that conflicts with another one is retried', async (t) => {
  const postgres = await sharedPostgres()
  const database = open(await postgres.database())
  t.teardown(() => database.close())
  await database.ask('api', 'create table counter(value int)')
  await database.ask('api', 'insert into counter values (0)')
  const add = () =>
    database.transaction('api', async (ask) => {
      const [row] = await ask<{ value: number }>('select value from counter')
      await ask('update counter set value = $1', [(row?.value ?? 0) + 1])
    })
  await Promise.all(Array.from({ length: 12 }, add))
  t.deepEqual(await database.ask('api', 'select value from counter'), [{ value: 12 }])
})

test('calls fail as unavailable while PostgreSQL is down and work again afterwards', async (t) => {
  const postgres = await startPostgres(atExit)
  const database = open(await postgres.database())
  t.teardown(() => database.close())
  t.deepEqual(await database.ask('api', 'select 1 as one'), [{ one: 1 }])
  postgres.stop('immediate')
  await t.throwsAsync(database.ask('write', 'select 1'), { code: 'unavailable' })
  t.truthy(database.fault)
  postgres.start()
  t.deepEqual(await database.ask('write', 'select 1 as one'), [{ one: 1 }])
  t.is(database.fault, null)
})
