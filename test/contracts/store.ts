import type { TestFn } from 'ava'
import { RsmError } from '../../src/core/errors.ts'
import type { Store } from '../../src/server/storage/ports/store.ts'
import { cluster, host, script, task, token, user } from '../helpers/servers/store-records.ts'

/** A store that can be closed and reopened with its contents. */
interface Reopenable {
  store: Store
  reopen: () => Promise<Store>
}

const idsOf = ({ items }: { items: readonly { id: number | string }[] }) => items.map(({ id }) => id)

interface QueryCase {
  title: string
  noun: 'hosts' | 'clusters' | 'tasks'
  records: readonly { id: number | string }[]
  query: object
  ids: (number | string)[]
}

const hosts = [
  host(1, 'Web10', { ip: '10.0.0.7', tags: { env: 'prod', dc: 'fra' } }),
  host(2, 'db1', { tags: { env: 'test' } }),
  host(3, 'web9', { tags: { env: 'prod' } }),
  host(4, 'web8', { tags: { prod: 'env' } }),
]
const clusters = [
  cluster(1, 'web', { hostIds: [1, 2] }),
  cluster(2, 'db', { description: 'The WEB of data', hostIds: [2] }),
  cluster(3, 'all'),
]
const tasks = [
  task('t1', { status: 'SUCCESS', scriptId: 1, hostSet: '1-3,7', completedAt: '2026-01-02T00:00:00.000Z' }),
  task('t2', { status: 'FAILED', scriptId: 1, hostSet: '4', completedAt: '2026-01-03T00:00:00.000Z' }),
  task('t3', { status: 'RUNNING', scriptId: 2, hostSet: '1-3,7' }),
  task('t4', { status: 'SUCCESS', scriptId: 1, createdBy: 'ann', hostSet: '7' }),
  task('t5', { status: 'SUCCESS' }),
]
/** Records that each predicate and order finds, alone and combined. */
const queries: QueryCase[] = [
  {
    title: 'all, newest first',
    noun: 'tasks',
    records: tasks,
    query: { order: 'desc' },
    ids: ['t5', 't4', 't3', 't2', 't1'],
  },
  {
    title: 'records with a value in an index',
    noun: 'tasks',
    records: tasks,
    query: { where: { equals: { status: 'SUCCESS' } } },
    ids: ['t1', 't4', 't5'],
  },
  {
    title: 'records with two indexed values, newest first',
    noun: 'tasks',
    records: tasks,
    query: { where: { equals: { status: 'SUCCESS', scriptId: 1 } }, order: 'desc' },
    ids: ['t4', 't1'],
  },
  {
    title: 'nothing for a value without records',
    noun: 'tasks',
    records: tasks,
    query: { where: { equals: { scriptId: 9 } } },
    ids: [],
  },
  {
    title: 'records with empty fields',
    noun: 'tasks',
    records: tasks,
    query: { where: { equals: { scriptId: null, clusterId: null } } },
    ids: ['t5'],
  },
  {
    title: 'all records if no predicate has a value',
    noun: 'tasks',
    records: tasks,
    query: {
      where: {
        equals: { status: undefined },
        has: { hostSet: undefined },
        contains: { fields: ['createdBy'], text: undefined },
      },
    },
    ids: ['t1', 't2', 't3', 't4', 't5'],
  },
  {
    title: 'tasks of a host, newest first',
    noun: 'tasks',
    records: tasks,
    query: { where: { has: { hostSet: [7] } }, order: 'desc' },
    ids: ['t4', 't3', 't1'],
  },
  {
    title: 'tasks of a host in a state',
    noun: 'tasks',
    records: tasks,
    query: { where: { equals: { status: 'SUCCESS' }, has: { hostSet: [7] } } },
    ids: ['t1', 't4'],
  },
  {
    title: 'tasks without recorded hosts',
    noun: 'tasks',
    records: tasks,
    query: { where: { equals: { hostSet: '' } } },
    ids: ['t5'],
  },
  {
    title: 'records before a time',
    noun: 'tasks',
    records: tasks,
    query: { where: { before: { completedAt: '2026-01-03T00:00:00.000Z' } } },
    ids: ['t1'],
  },
  {
    title: 'hosts in natural order of names',
    noun: 'hosts',
    records: hosts,
    query: { order: 'hostname' },
    ids: [2, 4, 3, 1],
  },
  {
    title: 'hosts with a tag in natural order of names',
    noun: 'hosts',
    records: hosts,
    query: { where: { has: { tags: [['env', 'prod']] } }, order: 'hostname' },
    ids: [3, 1],
  },
  {
    title: 'hosts with all of several tags',
    noun: 'hosts',
    records: hosts,
    query: {
      where: {
        has: {
          tags: [
            ['env', 'prod'],
            ['dc', 'fra'],
          ],
        },
      },
    },
    ids: [1],
  },
  {
    title: 'hosts by ids, in natural order of names',
    noun: 'hosts',
    records: hosts,
    query: { where: { ids: [4, 1, 99, 1, 3] }, order: 'hostname' },
    ids: [4, 3, 1],
  },
  {
    title: 'no host for an empty list of ids',
    noun: 'hosts',
    records: hosts,
    query: { where: { ids: [] } },
    ids: [],
  },
  {
    title: 'text in one of the fields, without regard to case',
    noun: 'hosts',
    records: hosts,
    query: { where: { contains: { fields: ['hostname', 'ip'], text: 'WEB1' } } },
    ids: [1],
  },
  {
    title: 'text in another of the fields',
    noun: 'hosts',
    records: hosts,
    query: { where: { contains: { fields: ['hostname', 'ip'], text: '0.7' } } },
    ids: [1],
  },
  {
    title: 'a name by its lower-case index',
    noun: 'hosts',
    records: hosts,
    query: { where: { equals: { hostname: 'web10' } } },
    ids: [1],
  },
  {
    title: 'clusters by text',
    noun: 'clusters',
    records: clusters,
    query: { where: { contains: { fields: ['name', 'description'], text: 'web' } } },
    ids: [1, 2],
  },
  {
    title: 'clusters that name a host',
    noun: 'clusters',
    records: clusters,
    query: { where: { has: { hostIds: [2] } } },
    ids: [1, 2],
  },
]

/** Suite for every implementation of Store. */
export function storeContract(
  test: TestFn,
  make: (teardown: (end: () => Promise<void>) => void) => Promise<Reopenable>,
) {
  test('a write can be read back by id and by index, also after a restart', async (t) => {
    const { store, reopen } = await make((end) => t.teardown(end))
    const id = await store.transact(async (tx) => {
      const given = await tx.nextId('hosts')
      tx.put('hosts', host(given, 'Web1'))
      return given
    })
    for (const opened of [store, await reopen()]) {
      t.like(await opened.get('hosts', id), { hostname: 'Web1' })
      t.deepEqual(await opened.find('hosts', 'hostname', 'web1'), [host(id, 'Web1')])
      t.is(await opened.get('hosts', id + 1), undefined)
      t.is(opened.storeId, store.storeId)
    }
  })

  test('a watcher of a noun is called for each record put or removed, and no other, before the write resolves', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    const heard: string[] = []
    store.watch('hosts', (id) => heard.push(`host ${id}`))
    store.watch('hosts', (id) => heard.push(`host ${id} too`))
    store.watch('tasks', (id) => heard.push(`task ${id}`))
    await store.transact((tx) => {
      tx.put('hosts', host(1, 'web1'))
      tx.put('tasks', task('t1'))
      tx.put('users', user(1, 'admin'))
    })
    t.deepEqual(heard.splice(0).sort(), ['host 1', 'host 1 too', 'task t1'])
    t.is((await store.get('hosts', 1))?.hostname, 'web1')
    const failing = store.transact((tx) => {
      tx.put('hosts', host(2, 'web2'))
      throw new Error('no')
    })
    await t.throwsAsync(failing)
    t.deepEqual(heard, [])
    await store.transact((tx) => tx.remove('hosts', 1))
    t.deepEqual(heard, ['host 1', 'host 1 too'])
  })

  test('after a refresh, a watcher has been called for all earlier writes', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    const heard: unknown[] = []
    store.watch('hosts', (id) => heard.push(id))
    await store.transact((tx) => tx.put('hosts', host(1, 'web1')))
    await store.refresh()
    t.deepEqual(heard, [1])
  })

  test('a clash on a unique index is a conflict and changes nothing', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    await store.transact((tx) => tx.put('hosts', host(1, 'web1')))
    const clash = store.transact((tx) => {
      tx.put('hosts', host(2, 'web2'))
      tx.put('hosts', host(3, 'WEB1'))
    })
    await t.throwsAsync(clash, {
      instanceOf: RsmError,
      code: 'conflict',
      message: 'another of the hosts has this hostname already (id 1)',
    })
    t.is((await store.query('hosts')).items.length, 1)
    t.deepEqual(await store.find('hosts', 'hostname', 'web2'), [])
  })

  test('a name that a later transaction frees still conflicts in the transactions before it', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    await store.transact((tx) => tx.put('users', user(1, 'ann')))
    const results = await Promise.allSettled([
      store.transact((tx) => tx.put('users', user(2, 'ann'))),
      store.transact((tx) => tx.remove('users', 1)),
      store.transact((tx) => tx.put('users', user(3, 'ann'))),
    ])
    t.deepEqual(
      results.map(({ status }) => status),
      ['rejected', 'fulfilled', 'fulfilled'],
    )
    t.deepEqual(idsOf(await store.query('users')), [3])
  })

  test('the first of two concurrent writes of a unique name succeeds, and the other is a conflict', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    const results = await Promise.allSettled(
      [1, 2].map((id) => store.transact((tx) => tx.put('users', user(id, 'ann')))),
    )
    t.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected'],
    )
  })

  test('a freed name can be taken, and two records can swap names', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    await store.transact((tx) => {
      tx.put('hosts', host(1, 'a'))
      tx.put('hosts', host(2, 'b'))
    })
    await store.transact((tx) => {
      tx.put('hosts', host(1, 'b'))
      tx.put('hosts', host(2, 'a'))
    })
    t.like((await store.find('hosts', 'hostname', 'a'))[0], { id: 2 })
    await store.transact((tx) => {
      tx.remove('hosts', 2)
      tx.put('hosts', host(3, 'a'))
    })
    t.like((await store.find('hosts', 'hostname', 'a'))[0], { id: 3 })
  })

  test('a transaction sees its own changes; others see them only after it ends', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    await store.transact((tx) => tx.put('tokens', token(1, 7)))
    const done = store.transact(async (tx) => {
      tx.put('tokens', token(2, 7))
      tx.remove('tokens', 1)
      t.is(await tx.get('tokens', 1), undefined)
      t.deepEqual(await tx.find('tokens', 'userId', 7), [token(2, 7)])
      t.deepEqual(await store.find('tokens', 'userId', 7), [token(1, 7)])
    })
    await done
    t.deepEqual(await store.find('tokens', 'userId', 7), [token(2, 7)])
  })

  test('a transaction sees the writes of earlier ones, durable or not', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    const counts = await Promise.all(
      [1, 2, 3].map((id) =>
        store.transact(async (tx) => {
          tx.put('tokens', token(id, 7))
          return (await tx.find('tokens', 'userId', 7)).length
        }),
      ),
    )
    t.deepEqual(counts, [1, 2, 3])
  })

  test('transactions are serial: no update is lost between a read and a write', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    await store.transact((tx) => tx.put('hosts', host(1, 'web1', { sshPort: 0 })))
    const raise = () =>
      store.transact(async (tx) => {
        const found = (await tx.get('hosts', 1)) ?? host(1, 'web1')
        tx.put('hosts', { ...found, sshPort: found.sshPort + 1 })
      })
    await Promise.all(Array.from({ length: 50 }, raise))
    t.is((await store.get('hosts', 1))?.sshPort, 50)
  })

  test('a transaction that throws changes nothing and passes its error on', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    const failing = store.transact((tx) => {
      tx.put('hosts', host(1, 'web1'))
      throw new RsmError('not_found', 'no such thing')
    })
    await t.throwsAsync(failing, { message: 'no such thing' })
    t.deepEqual((await store.query('hosts')).items, [])
    await store.transact((tx) => tx.put('hosts', host(2, 'web1')))
    t.is((await store.query('hosts')).items.length, 1)
  })

  test('ids ascend and are never reused, even after removal and restart', async (t) => {
    const { store, reopen } = await make((end) => t.teardown(end))
    const next = (from: Store) =>
      from.transact(async (tx) => {
        const id = await tx.nextId('users')
        tx.put('users', user(id, `user-${id}`))
        return id
      })
    t.deepEqual([await next(store), await next(store)], [1, 2])
    await store.transact((tx) => tx.remove('users', 2))
    await store.transact((tx) => {
      tx.put('users', user(9, 'nine'))
      tx.remove('users', 9)
    })
    const again = await reopen()
    t.true((await next(again)) > 2)
    await again.transact((tx) => tx.put('users', user(20, 'twenty')))
    await again.transact((tx) => tx.remove('users', 20))
    t.is(await next(await reopen()), 21)
  })

  test('an id is not reused if its transaction failed, and the last id can be read', async (t) => {
    const { store, reopen } = await make((end) => t.teardown(end))
    const last = (from: Store) => from.transact((tx) => tx.lastId('enrollments'))
    t.is(await last(store), 0)
    let lost = 0
    const failing = store.transact(async (tx) => {
      lost = await tx.nextId('enrollments')
      throw new Error('no')
    })
    await t.throwsAsync(failing, { message: 'no' })
    const id = await store.transact((tx) => tx.nextId('enrollments'))
    t.true(id > lost)
    t.is(await last(store), id)
    t.is(await last(await reopen()), id)
  })

  test('find and query return records in ascending order of id, whatever the order of writing', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    await store.transact((tx) => {
      for (const id of [10, 2, 33, 1, 4]) tx.put('tokens', token(id, 1))
    })
    await store.transact((tx) => tx.remove('tokens', 4))
    await store.transact((tx) => tx.put('tokens', token(3, 1)))
    t.deepEqual(idsOf(await store.query('tokens')), [1, 2, 3, 10, 33])
    t.deepEqual(idsOf({ items: await store.find('tokens', 'userId', 1) }), [1, 2, 3, 10, 33])
    for (const where of [{}, { equals: { userId: 1 } }, { equals: { kind: 'session' } }]) {
      const page = async (offset: number, limit: number, order: 'asc' | 'desc') => {
        const found = await store.query('tokens', { where, offset, limit, order })
        return [...idsOf(found), `of ${found.total}`]
      }
      t.deepEqual(await page(1, 2, 'asc'), [2, 3, 'of 5'])
      t.deepEqual(await page(0, 2, 'desc'), [33, 10, 'of 5'])
      t.deepEqual(await page(4, 2, 'desc'), [1, 'of 5'])
      t.deepEqual(await page(5, 2, 'asc'), ['of 5'])
      t.deepEqual(await page(9, 2, 'desc'), ['of 5'])
      t.deepEqual(await page(0, 0, 'asc'), ['of 5'])
    }
  })

  test('many records are read at once, in the order of the ids given, with a gap for each missing one', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    await store.transact((tx) => {
      for (const id of [1, 2, 3]) tx.put('hosts', host(id, `web${id}`))
    })
    const names = (found: ({ hostname: string } | undefined)[]) => found.map((one) => one?.hostname)
    t.deepEqual(names(await store.getMany('hosts', [3, 9, 1, 3])), ['web3', undefined, 'web1', 'web3'])
    t.deepEqual(await store.getMany('hosts', []), [])
    await store.transact(async (tx) => {
      tx.remove('hosts', 1)
      tx.put('hosts', host(9, 'new'))
      t.deepEqual(names(await tx.getMany('hosts', [3, 9, 1])), ['web3', 'new', undefined])
    })
  })

  for (const { title, noun, records, query, ids } of queries)
    test(`a query finds ${title}`, async (t) => {
      const { store, reopen } = await make((end) => t.teardown(end))
      await store.transact((tx) => {
        for (const record of records) tx.put(noun, record as never)
      })
      for (const opened of [store, await reopen()]) {
        const found = await opened.query(noun, query)
        t.deepEqual(idsOf(found), ids)
        t.is(found.total, ids.length)
        const [second] = (await opened.query(noun, { ...query, offset: 1, limit: 1 })).items
        t.is(second?.id, ids[1])
      }
    })

  for (const { title, noun, records, query, ids } of queries)
    test(`a transaction finds ${title} among its own changes and stored records`, async (t) => {
      const { store } = await make((end) => t.teardown(end))
      const ours = records.filter((_, index) => index % 2 === 0)
      await store.transact((tx) => {
        for (const record of records) if (!ours.includes(record)) tx.put(noun, record as never)
      })
      await store.transact(async (tx) => {
        for (const record of ours) tx.put(noun, record as never)
        t.deepEqual(idsOf(await tx.query(noun, query)), ids)
        const [last] = ids.slice(-1)
        if (last === undefined) return
        tx.remove(noun, last)
        const left = await tx.query(noun, query)
        t.deepEqual(idsOf(left), ids.slice(0, -1))
        t.is(left.total, ids.length - 1)
      })
    })

  test('a query limited by text returns the first records of its page, at least one, and counts all', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    await store.transact((tx) => {
      for (let id = 1; id <= 5; id++) tx.put('scripts', script(id, `s${id}`, { content: 'x'.repeat(1000) }))
    })
    for (const where of [{}, { contains: { fields: ['name'], text: 's' } } as const])
      for (const limitText of [1, 3000, 100_000]) {
        const found = await store.query('scripts', { where, offset: 1, limit: 3, limitText })
        t.is(found.total, 5)
        t.true(found.items.length > 0)
        t.deepEqual(idsOf(found), [2, 3, 4].slice(0, found.items.length))
        if (limitText === 100_000) t.is(found.items.length, 3)
      }
    t.deepEqual(await store.query('scripts', { offset: 9, limit: 3, limitText: 1 }), { items: [], total: 5 })
  })

  test('bytes of text are summed by author, for tasks only of running ones', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    const bytes = (...records: object[]) =>
      records.reduce((sum, record) => sum + Buffer.byteLength(JSON.stringify(record)), 0)
    const byAnn = [
      script(1, 'a', { createdBy: 'ann', content: 'é'.repeat(100) }),
      script(2, 'b', { createdBy: 'ann' }),
    ]
    const byBob = script(3, 'c', { createdBy: 'ann', changedBy: 'bob' })
    const runs = task('t1', { createdBy: 'bob' })
    await store.transact((tx) => {
      for (const one of [...byAnn, byBob]) tx.put('scripts', one)
      for (const one of [runs, task('t2', { status: 'SUCCESS' })]) tx.put('tasks', one)
    })
    t.deepEqual(Object.fromEntries(await store.textBytes('scripts')), {
      ann: bytes(...byAnn),
      bob: bytes(byBob),
    })
    t.deepEqual(await store.textBytes('tasks'), new Map([['bob', bytes(runs)]]))
    t.deepEqual(await store.textBytes('schedules'), new Map())
  })

  test('an order by name follows names that change, swap and are removed', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    const names = async () =>
      (await store.query('hosts', { order: 'hostname' })).items.map(({ hostname }) => hostname)
    await store.transact((tx) => {
      for (const [id, name] of ['web10', 'web9', 'db1', 'Web1'].entries()) tx.put('hosts', host(id + 1, name))
    })
    t.deepEqual(await names(), ['db1', 'Web1', 'web9', 'web10'])
    await store.transact((tx) => {
      tx.put('hosts', host(1, 'web9'))
      tx.put('hosts', host(2, 'web10'))
      tx.put('hosts', host(3, 'zz'))
      tx.put('hosts', host(5, 'aa'))
    })
    t.deepEqual(await names(), ['aa', 'Web1', 'web9', 'web10', 'zz'])
    await store.transact((tx) => tx.put('hosts', host(3, 'a1')))
    await store.transact((tx) => tx.put('hosts', host(3, 'zz', { ip: '10.0.0.9' })))
    await store.transact((tx) => tx.remove('hosts', 4))
    t.deepEqual(await names(), ['aa', 'web9', 'web10', 'zz'])
  })

  test('a decision over many records under a lock holds for all of them', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    await store.transact((tx) => {
      for (const id of [1, 2, 3]) tx.put('users', { ...user(id, `admin-${id}`), role: 'ADMIN' })
    })
    const demoted = await Promise.allSettled(
      [1, 2, 3].map((id) =>
        store.transact(async (tx) => {
          await tx.lock('admins')
          const { total } = await tx.query('users', { where: { equals: { role: 'ADMIN' } }, limit: 0 })
          if (total === 1) throw new Error('the last one')
          tx.put('users', user(id, `admin-${id}`))
        }),
      ),
    )
    t.is(demoted.filter(({ status }) => status === 'fulfilled').length, 2)
    t.is((await store.query('users', { where: { equals: { role: 'ADMIN' } } })).total, 1)
  })

  test('an index follows its record: a changed or removed key is no longer found', async (t) => {
    const { store, reopen } = await make((end) => t.teardown(end))
    await store.transact((tx) => {
      tx.put('tasks', task('t1'))
      tx.put('tasks', task('t2'))
    })
    await store.transact((tx) => tx.put('tasks', task('t1', { status: 'SUCCESS' })))
    for (const opened of [store, await reopen()]) {
      t.deepEqual(await opened.find('tasks', 'status', 'RUNNING'), [task('t2')])
      t.deepEqual(await opened.find('tasks', 'status', 'SUCCESS'), [task('t1', { status: 'SUCCESS' })])
      t.deepEqual(await opened.find('tasks', 'status', 'FAILED'), [])
    }
  })

  test('records swap keys of a unique index within one transaction, and each is found by its new key', async (t) => {
    const { store, reopen } = await make((end) => t.teardown(end))
    await store.transact((tx) => {
      for (const id of [1, 2, 3]) tx.put('hosts', host(id, `web${id}`))
    })
    await store.transact((tx) => {
      tx.put('hosts', host(3, 'web4'))
      tx.put('hosts', host(1, 'web3'))
      tx.remove('hosts', 2)
    })
    await store.transact((tx) => tx.put('hosts', host(5, 'web1')))
    for (const opened of [store, await reopen()]) {
      const ids = async (name: string) => (await opened.find('hosts', 'hostname', name)).map(({ id }) => id)
      t.deepEqual(await Promise.all(['web1', 'web2', 'web3', 'web4'].map(ids)), [[5], [], [1], [3]])
    }
  })

  test('thousands of records are added, changed and removed', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    const ids = Array.from({ length: 3000 }, (_, index) => index + 1)
    await store.transact((tx) => {
      for (const id of ids) tx.put('tokens', token(id, 7))
    })
    await Promise.all(
      ids.map((id) => store.transact((tx) => tx.put('tokens', { ...token(id, 7), role: 'ADMIN' }))),
    )
    const found = await store.find('tokens', 'userId', 7)
    t.is(found.length, 3000)
    t.true(found.every(({ role }) => role === 'ADMIN'))
    await store.transact((tx) => {
      for (const id of ids) if (id !== 77) tx.remove('tokens', id)
    })
    t.deepEqual(idsOf({ items: await store.find('tokens', 'userId', 7) }), [77])
  })

  test('a record that was read does not change, and cannot be changed in place', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    const record = host(1, 'web1', { tags: { env: 'prod' } })
    await store.transact((tx) => tx.put('hosts', record))
    const before = (await store.query('hosts')).items
    const held = await store.get('hosts', 1)
    await store.transact((tx) => tx.put('hosts', host(1, 'web2')))
    await store.transact((tx) => tx.put('hosts', host(2, 'web3')))
    t.is(before.length, 1)
    t.is(before[0]?.hostname, 'web1')
    t.is(held?.hostname, 'web1')
    t.throws(() => {
      record.tags['env'] = 'test'
    })
  })

  test('an answer that depends on an earlier write waits until that write is durable', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    const order: string[] = []
    const write = store.transact((tx) => tx.put('hosts', host(1, 'web1'))).then(() => order.push('write'))
    const read = store.transact((tx) => tx.get('hosts', 1)).then(() => order.push('read'))
    await Promise.all([write, read])
    t.deepEqual(order, ['write', 'read'])
  })

  test('a write after close is refused', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    const last = store.transact((tx) => tx.put('hosts', host(1, 'web1')))
    await Promise.all([last, store.close()])
    await t.throwsAsync(
      store.transact((tx) => tx.put('hosts', host(2, 'web2'))),
      { code: 'unavailable' },
    )
  })
}
