import type { Store } from '../../../src/server/storage/ports/store.ts'
import { sweepChanges } from '../../../src/server/storage/postgres/store/feed.ts'
import { openDatabase } from '../../helpers/servers/open-database.ts'
import { openStore } from '../../helpers/servers/open-store.ts'
import { atExit, dumped, startPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { host } from '../../helpers/servers/store-records.ts'
import { until } from '../../helpers/until.ts'

const put = (store: Store, id: number) => store.transact((tx) => tx.put('hosts', host(id, `web${id}`)))

/** Raises the transaction ids above those of a new PostgreSQL. */
const many = 'do $$ begin for n in 1..5000 loop perform pg_current_xact_id(); commit; end loop; end $$'

test('each change in a PostgreSQL restored from a dump is notified once, and nothing is read again', async (t) => {
  const former = await (await startPostgres(atExit)).database()
  const { database, store } = await openStore(t, former, 'a')
  await database.ask('api', many)
  await put(store, 1)
  await sweepChanges(database, 0)
  await put(store, 2)
  await database.ask(
    'api',
    `insert into rsm.executions(task_id, host_id, position, over_ssh, rec, xid)
     values ('t1', 1, 0, false, '{"status":"PENDING"}', pg_current_xact_id())`,
  )
  const present = await (await startPostgres(atExit)).database({ migrated: false })
  const client = await openDatabase(t, present).connect(true)
  await client.query(dumped(former))
  await client.end()
  const restored = await openStore(t, present, 'b')
  const heard: (number | null)[] = []
  restored.store.watch('hosts', (id) => heard.push(id))
  await put(restored.store, 3)
  const other = await openStore(t, present, 'c')
  await put(other.store, 4)
  await until('the later change is notified', () => heard.includes(4))
  await restored.store.refresh()
  t.deepEqual(heard, [3, 4])
  t.deepEqual(await restored.database.ask('api', 'select from rsm.executions where xid is not null'), [])
})
