import type { TestFn } from 'ava'
import { RsmError } from '../../src/core/errors.ts'
import type { Store } from '../../src/server/seams/store.ts'
import { execution, host, task, token, user } from '../helpers/servers/store-records.ts'

/** A store that can be closed and opened again with what it held. */
interface Reopenable {
  store: Store
  reopen: () => Promise<Store>
}

/** What every implementation of Store has to do. */
export function storeContract(
  test: TestFn,
  make: (teardown: (end: () => Promise<void>) => void) => Promise<Reopenable>,
) {
  test('a write is read back, by id and by index, also after a restart', async (t) => {
    const { store, reopen } = await make((end) => t.teardown(end))
    const id = await store.transact((tx) => {
      const given = tx.nextId('hosts')
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

  test('the revision of a noun has risen when the writer of a change hears of it, and at no other time', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    const revisions = [store.revision('hosts')]
    for (const work of [host(1, 'web1'), host(1, 'web2')]) {
      await store.transact((tx) => tx.put('hosts', work))
      revisions.push(store.revision('hosts'))
    }
    await store.transact((tx) => tx.remove('hosts', 1))
    revisions.push(store.revision('hosts'))
    t.deepEqual(
      revisions,
      [...new Set(revisions)].sort((a, b) => a - b),
    )
    await store.transact((tx) => tx.put('users', user(1, 'admin')))
    await t.throwsAsync(
      store.transact((tx) => {
        tx.put('hosts', host(2, 'web2'))
        throw new Error('no')
      }),
    )
    t.is(store.revision('hosts'), revisions.at(-1) ?? Number.NaN)
  })

  test('a clash on a unique index is a conflict and changes nothing', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    await store.transact((tx) => tx.put('hosts', host(1, 'web1')))
    const clash = store.transact((tx) => {
      tx.put('hosts', host(2, 'web2'))
      tx.put('hosts', host(3, 'WEB1'))
    })
    await t.throwsAsync(clash, { instanceOf: RsmError, code: 'conflict' })
    t.is((await store.all('hosts')).length, 1)
    t.deepEqual(await store.find('hosts', 'hostname', 'web2'), [])
  })

  test('two writes at once of one unique name: one wins, the other is a conflict', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    const results = await Promise.allSettled(
      [1, 2].map((id) => store.transact((tx) => tx.put('users', user(id, 'ann')))),
    )
    t.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected'],
    )
  })

  test('a name that is given up can be taken, and two records can swap names', async (t) => {
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

  test('a transaction sees its own changes; others see them only once it is done', async (t) => {
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

  test('a transaction sees what earlier ones wrote, durable yet or not', async (t) => {
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

  test('transactions are serial: none is lost between a read and a write', async (t) => {
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
    t.deepEqual(await store.all('hosts'), [])
    await store.transact((tx) => tx.put('hosts', host(2, 'web1')))
    t.is((await store.all('hosts')).length, 1)
  })

  test('ids ascend and are never given out twice, also after removal and restart', async (t) => {
    const { store, reopen } = await make((end) => t.teardown(end))
    const next = (from: Store) =>
      from.transact((tx) => {
        const id = tx.nextId('users')
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

  test('find, all and page answer in ascending order of id, whatever the order of writing', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    await store.transact((tx) => {
      for (const id of [10, 2, 33, 1, 4]) tx.put('tokens', token(id, 1))
    })
    await store.transact((tx) => tx.remove('tokens', 4))
    await store.transact((tx) => tx.put('tokens', token(3, 1)))
    const ids = (records: readonly { id: number }[]) => records.map(({ id }) => id)
    t.deepEqual(ids(await store.all('tokens')), [1, 2, 3, 10, 33])
    t.deepEqual(ids(await store.find('tokens', 'userId', 1)), [1, 2, 3, 10, 33])
    const page = (offset: number, limit: number, order: 'asc' | 'desc') =>
      store
        .page('tokens', { offset, limit, order })
        .then(({ items, total }) => [...ids(items), `of ${total}`])
    t.deepEqual(await page(1, 2, 'asc'), [2, 3, 'of 5'])
    t.deepEqual(await page(0, 2, 'desc'), [33, 10, 'of 5'])
    t.deepEqual(await page(4, 2, 'desc'), [1, 'of 5'])
    t.deepEqual(await page(5, 2, 'asc'), ['of 5'])
    t.deepEqual(await page(9, 2, 'desc'), ['of 5'])
  })

  test('an index follows its record: a key that changes or ends is no longer found', async (t) => {
    const { store, reopen } = await make((end) => t.teardown(end))
    await store.transact((tx) => {
      tx.put('tasks', task('t1'))
      tx.put('tasks', task('t2'))
    })
    await store.transact((tx) => tx.put('tasks', task('t1', { status: 'SUCCESS' })))
    for (const opened of [store, await reopen()]) {
      t.deepEqual(await opened.find('tasks', 'status', 'RUNNING'), [task('t2')])
      t.deepEqual(await opened.find('tasks', 'status', 'SUCCESS'), [])
    }
  })

  test('thousands of executions come, change and go', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    const hostIds = Array.from({ length: 3000 }, (_, index) => index + 1)
    await store.transact((tx) => {
      for (const id of hostIds) tx.put('executions', execution('t1', id))
    })
    await Promise.all(
      hostIds.map((id) =>
        store.transact((tx) => tx.put('executions', { ...execution('t1', id), status: 'SUCCESS' })),
      ),
    )
    const found = await store.find('executions', 'taskId', 't1')
    t.is(found.length, 3000)
    t.true(found.every(({ status }) => status === 'SUCCESS'))
    await store.transact((tx) => {
      for (const id of hostIds) if (id !== 77) tx.remove('executions', `t1/${id}`)
    })
    t.deepEqual(
      (await store.find('executions', 'taskId', 't1')).map(({ id }) => id),
      ['t1/77'],
    )
  })

  test('what a reader was given does not change, and a record can not be changed in place', async (t) => {
    const { store } = await make((end) => t.teardown(end))
    const record = host(1, 'web1', { tags: { env: 'prod' } })
    await store.transact((tx) => tx.put('hosts', record))
    const before = await store.all('hosts')
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

  test('an answer that rests on an earlier write waits until that is durable', async (t) => {
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
