import type { ExecutionContext } from 'ava'
import type { Store } from '../../../src/server/storage/ports/store.ts'
import { sweepChanges } from '../../../src/server/storage/postgres/store/feed.ts'
import { openStore } from '../../helpers/servers/open-store.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { host, token, user } from '../../helpers/servers/store-records.ts'
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
  return { a: a.store, b: b.store, database: a.database, heard }
}

const put = (store: Store, id: number, name = `web${id}`) =>
  store.transact((tx) => tx.put('hosts', host(id, name)))

test('servers of one database are one store', async (t) => {
  const { a, b } = await pair(t)
  t.is(a.storeId, b.storeId)
  t.regex(a.storeId, /^[\w-]{22}$/)
})

test('a change is notified once at the other server, and once and at once at the writer', async (t) => {
  const { a, b, heard } = await pair(t)
  await put(a, 1)
  t.deepEqual(heard, [[1], []])
  await until('the other server is notified', () => heard[1].length > 0)
  await a.transact((tx) => tx.remove('hosts', 1))
  await Promise.all([a.refresh(), b.refresh()])
  await put(b, 2)
  await until('the later change is notified', () => heard[0].includes(2))
  t.deepEqual(heard, [
    [1, 1, 2],
    [1, 1, 2],
  ])
})

test('a server that refreshes has been notified of every change that another server acknowledged', async (t) => {
  const { a, b, heard } = await pair(t)
  for (let id = 1; id <= 50; id++) {
    await put(a, id)
    await b.refresh()
    t.is(heard[1].at(-1), id)
  }
})

test('a change that commits long after later ones is notified once', async (t) => {
  const { a, b, database, heard } = await pair(t)
  const slow = await database.connect()
  t.teardown(() => slow.end())
  await slow.query('begin')
  await slow.query(`insert into rsm.changes(noun, id) values ('hosts', '77')`)
  await put(a, 1)
  await b.refresh()
  t.deepEqual(heard[1], [1])
  await b.refresh()
  await slow.query('commit')
  await b.refresh()
  await b.refresh()
  t.deepEqual(heard[1], [1, 77])
})

test('old changes are swept by one server; a server that missed some treats everything as changed', async (t) => {
  const { a, b, database, heard } = await pair(t)
  await put(a, 1)
  await b.refresh()
  const left = async () => (await database.ask('api', 'select 1 as one from rsm.changes')).length
  await sweepChanges(database)
  await sweepChanges(database)
  t.is(await left(), 1)
  // Changes stay while a transaction of this PostgreSQL may not have seen them.
  await until('the changes are swept', async () => {
    await sweepChanges(database, 0)
    return (await left()) === 0
  })
  // Consecutive sweeps like these leave a server behind.
  await b.refresh()
  heard[1].length = 0
  await put(a, 2)
  await b.refresh()
  t.deepEqual(heard[1], [2])
  // As if the server had been suspended during the sweep.
  await database.ask(
    'api',
    'update rsm.feed set below = (pg_current_xact_id()::text::bigint + 1)::text::xid8',
  )
  await b.refresh()
  t.deepEqual(heard[1], [2, null])
})

test('two servers that demote the last two ADMINs at the same time leave one of them', async (t) => {
  const { a, b } = await pair(t)
  for (let round = 0; round < 10; round++) {
    await a.transact((tx) => {
      for (const id of [1, 2]) tx.put('users', { ...user(id, `admin-${id}`), role: 'ADMIN' })
    })
    const demote = (store: Store, id: number) =>
      store.transact(async (tx) => {
        await tx.lock('admins')
        const { total } = await tx.query('users', { where: { equals: { role: 'ADMIN' } }, limit: 2 })
        if (total === 1) throw new Error('the last ADMIN')
        tx.put('users', user(id, `admin-${id}`))
      })
    const done = await Promise.allSettled([demote(a, 1), demote(b, 2)])
    t.is(done.filter(({ status }) => status === 'fulfilled').length, 1)
    t.is((await a.query('users', { where: { equals: { role: 'ADMIN' } } })).total, 1)
  }
})

test('two servers that give two hosts one name at the same time cause one conflict', async (t) => {
  const { a, b } = await pair(t)
  for (let round = 1; round <= 20; round++) {
    const done = await Promise.allSettled([
      put(a, 2 * round, `web${round}`),
      put(b, 2 * round + 1, `WEB${round}`),
    ])
    const refused = done.filter(({ status }) => status === 'rejected')
    t.is(refused.length, 1)
    t.regex(
      String((refused[0] as PromiseRejectedResult).reason),
      /another of the hosts has this hostname already \(id \d+\)/,
    )
  }
})

test('a transaction that meets a key written concurrently decides as if that key had been there first', async (t) => {
  const { a, b } = await pair(t)
  const enter = (store: Store) =>
    store.transact(async (tx) => {
      const [found] = await tx.find('hosts', 'hostname', 'web1')
      if (found) return found.id
      const id = await tx.nextId('hosts')
      tx.put('hosts', host(id, 'web1'))
      return id
    })
  for (let round = 0; round < 20; round++) {
    const ids = await Promise.all([enter(a), enter(b), enter(a)])
    t.is(new Set(ids).size, 1)
    await a.transact((tx) => tx.remove('hosts', ids[0]))
  }
})

test('concurrent updates of a record on two servers are all kept, and ids are unique', async (t) => {
  const { a, b } = await pair(t)
  await a.transact((tx) => tx.put('tokens', token(1, 0)))
  const count = (store: Store) =>
    store.transact(async (tx) => {
      const held = await tx.get('tokens', 1)
      if (!held) throw new Error('no such token')
      tx.put('tokens', { ...held, userId: held.userId + 1 })
      return tx.nextId('hosts')
    })
  const ids = await Promise.all(Array.from({ length: 300 }, (_, at) => count(at % 2 === 0 ? a : b)))
  t.is((await a.get('tokens', 1))?.userId, 300)
  t.is(new Set(ids).size, 300)
})
