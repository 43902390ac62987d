import { setTimeout as delay } from 'node:timers/promises'
import { createLog } from '../../../src/disk/log.ts'
import {
  openPostgresStore,
  type PostgresStore,
  withReplica,
} from '../../../src/server/storage/postgres/store/store.ts'
import { storeContract } from '../../contracts/store.ts'
import { openDatabase } from '../../helpers/servers/open-database.ts'
import {
  atExit,
  sharedPostgres,
  startPostgres,
  postgresTest as test,
} from '../../helpers/servers/postgres.ts'
import { cluster, host } from '../../helpers/servers/store-records.ts'
import { until } from '../../helpers/until.ts'

const postgres = sharedPostgres()
type Teardown = (end: () => Promise<void>) => void

async function open(url: string, teardown: Teardown): Promise<PostgresStore> {
  const ends: (() => Promise<void>)[] = []
  const database = openDatabase({ teardown: (end) => void ends.push(end) }, url)
  const store = await openPostgresStore({ database, log: createLog('ERROR') })
  teardown(async () => {
    await store.close()
    for (const end of ends) await end()
  })
  return withReplica(store)
}

storeContract(test, async (teardown) => {
  const url = await (await postgres).database()
  return { store: await open(url, teardown), reopen: () => open(url, teardown) }
})

test("a server reads another server's acknowledged changes at once", async (t) => {
  const url = await (await postgres).database()
  const [a, b] = [await open(url, t.teardown), await open(url, t.teardown)]
  for (let round = 1; round <= 20; round++) {
    await a.transact((tx) => tx.put('hosts', host(round, `web${round}`)))
    t.is((await b.get('hosts', round))?.hostname, `web${round}`)
    t.is((await b.query('hosts', { limit: 1 })).total, round)
  }
  await b.transact((tx) => tx.remove('hosts', 7))
  t.deepEqual(await a.find('hosts', 'hostname', 'web7'), [])
  await Promise.all(
    Array.from({ length: 30 }, (_, at) =>
      a
        .transact((tx) => tx.put('clusters', cluster(at + 1, `c${at + 1}`)))
        .then(async () => t.is((await b.get('clusters', at + 1))?.name, `c${at + 1}`)),
    ),
  )
})

test('while PostgreSQL is down hosts and clusters are read from the replica, and nothing else is', async (t) => {
  const own = await startPostgres(atExit)
  const store = await open(await own.database(), t.teardown)
  await store.transact((tx) => tx.put('hosts', host(1, 'web1')))
  t.is((await store.get('hosts', 1))?.hostname, 'web1')
  own.stop('immediate')
  t.is((await store.get('hosts', 1))?.hostname, 'web1')
  t.is((await store.query('hosts', { limit: 10 })).total, 1)
  t.deepEqual((await store.query('clusters')).items, [])
  await t.throwsAsync(store.query('users'), { code: 'unavailable' })
  await t.throwsAsync(
    store.transact((tx) => tx.put('hosts', host(2, 'web2'))),
    { code: 'unavailable' },
  )
  own.start()
  await until('the store accepts writes again', async () => {
    await delay(50)
    return store
      .transact((tx) => tx.put('hosts', host(2, 'web2')))
      .then(
        () => true,
        () => false,
      )
  })
  t.is((await store.query('hosts', { limit: 10 })).total, 2)
})
