import { randomBytes } from 'node:crypto'
import { storeContract } from '../../../../contracts/store.ts'
import { openStore } from '../../../../helpers/servers/open-store.ts'
import { sharedPostgres, postgresTest as test } from '../../../../helpers/servers/postgres.ts'
import { host, script } from '../../../../helpers/servers/store-records.ts'

const postgres = sharedPostgres()

storeContract(test, async (teardown) => {
  const url = await (await postgres).database()
  const open = async () => (await openStore({ teardown }, url)).store
  return { store: await open(), reopen: open }
})

test('statements of other modules run in the same transaction and see its changes', async (t) => {
  const { store } = await openStore(t, await (await postgres).database())
  const seen = await store.transactAsk(async (tx, ask) => {
    tx.put('hosts', host(1, 'web1'))
    return ask('select id from rsm.hosts')
  })
  t.deepEqual(seen, [{ id: 1 }])
  const failing = store.transactAsk(async (_, ask) => {
    await ask('delete from rsm.hosts')
    throw new Error('no')
  })
  await t.throwsAsync(failing, { message: 'no' })
  t.is((await store.get('hosts', 1))?.hostname, 'web1')
})

test('a transaction that cannot be written does not affect others that run at the same time', async (t) => {
  const { store } = await openStore(t, await (await postgres).database())
  // Larger than an index entry may be, and random, because PostgreSQL compresses.
  const unwritable = host(2, randomBytes(8000).toString('hex'))
  const results = await Promise.allSettled([
    store.transact((tx) => tx.put('hosts', host(1, 'web1'))),
    store.transact((tx) => tx.put('hosts', unwritable)),
    store.transact(async (tx) => {
      tx.put('hosts', host(3, 'web3'))
      // Makes the transaction send its change before it fails.
      await tx.query('hosts')
      throw new Error('no')
    }),
    store.transact(async (tx) => {
      tx.put('hosts', host(4, 'web4'))
      return (await tx.query('hosts')).items.map(({ id }) => id)
    }),
  ])
  t.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'rejected', 'fulfilled'],
  )
  t.like(results[3], { value: [1, 4] })
  t.deepEqual(
    (await store.query('hosts')).items.map(({ id }) => id),
    [1, 4],
  )
})

test('a page of long records ends at the text limit, with and without a search', async (t) => {
  const { store } = await openStore(t, await (await postgres).database())
  await store.transact((tx) => {
    for (let id = 1; id <= 5; id++) tx.put('scripts', script(id, `s${id}`, { content: 'x'.repeat(10_000) }))
  })
  for (const where of [{}, { contains: { fields: ['name'], text: 's' } } as const]) {
    const pageOf = async (limitText: number) => {
      const { items, total } = await store.query('scripts', { where, order: 'desc', limit: 4, limitText })
      return [...items.map(({ id }) => id), `of ${total}`]
    }
    t.deepEqual(await pageOf(1), [5, 'of 5'])
    t.deepEqual(await pageOf(25_000), [5, 4, 'of 5'])
    t.deepEqual(await pageOf(100_000), [5, 4, 3, 2, 'of 5'])
  }
})

test('more records than fit into one statement are written in one transaction', async (t) => {
  const { store } = await openStore(t, await (await postgres).database())
  const heard = new Set<number | null>()
  store.watch('hosts', (id) => heard.add(id))
  const ids = Array.from({ length: 4500 }, (_, at) => at + 1)
  await store.transact((tx) => {
    for (const id of ids) tx.put('hosts', host(id, `web${id}`))
  })
  t.is(heard.size, ids.length)
  await store.transact(async (tx) => {
    for (const id of ids.slice(1)) tx.remove('hosts', id)
    t.is((await tx.query('hosts', { limit: 1 })).total, 1)
  })
  t.is((await store.query('hosts')).total, 1)
  t.is(await store.transact((tx) => tx.nextId('hosts')), 4501)
})
