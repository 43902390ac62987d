import type { ExecutionContext } from 'ava'
import type { Store } from '../../../src/server/storage/ports/store.ts'
import { openStore } from '../../helpers/servers/open-store.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { host } from '../../helpers/servers/store-records.ts'
import { until } from '../../helpers/until.ts'

const postgres = sharedPostgres()

/** Two servers of one store, and the host changes that each is notified of. */
async function pair(t: ExecutionContext) {
  const url = await (await postgres).database()
  const [a, b] = [await openStore(t, url, 'a'), await openStore(t, url, 'b')]
  const heard = [a, b].map(({ store }) => {
    const own: (number | null)[] = []
    store.watch('hosts', (id) => own.push(id))
    return own
  }) as [(number | null)[], (number | null)[]]
  return { a: a.store, b: b.store, heard }
}

const put = (store: Store, id: number) => store.transact((tx) => tx.put('hosts', host(id, `web${id}`)))

test("a server learns of another server's change within a second", async (t) => {
  const { a, heard } = await pair(t)
  const from = performance.now()
  await put(a, 1)
  t.deepEqual(heard, [[1], []])
  await until('the other server is notified', () => heard[1].length > 0)
  t.true(performance.now() - from < 2000)
})

test('a server that receives a hint reads the changes at once', async (t) => {
  const { a, b, heard } = await pair(t)
  await put(a, 1)
  const from = performance.now()
  b.poll()
  await until('the server is notified', () => heard[1].length > 0)
  t.true(performance.now() - from < 900)
})
