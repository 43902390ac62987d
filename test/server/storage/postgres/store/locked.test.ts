import type { ExecutionContext } from 'ava'
import type { Transaction } from '../../../../../src/server/storage/ports/store.ts'
import { openStore } from '../../../../helpers/servers/open-store.ts'
import { sharedPostgres, postgresTest as test } from '../../../../helpers/servers/postgres.ts'
import { task } from '../../../../helpers/servers/store-records.ts'

const postgres = sharedPostgres()

async function twoStores(t: ExecutionContext) {
  const url = await (await postgres).database()
  const open = async (name: string) => (await openStore(t, url, name)).store
  return [await open('a'), await open('b')] as const
}

const times = 20

test('a record read by id in a locking transaction stays locked until its end, so that no change is lost', async (t) => {
  const [one, other] = await twoStores(t)
  await one.transact((tx) => tx.put('tasks', task('t1', { hostCount: 0 })))
  let runs = 0
  const count = async (tx: Transaction) => {
    runs++
    const record = await tx.get('tasks', 't1')
    if (record) tx.put('tasks', { ...record, hostCount: record.hostCount + 1 })
  }
  const counting = Array.from({ length: times }, () => [
    one.transactLocked(count),
    other.transactLocked(count),
    other.transact(count),
  ])
  await Promise.all(counting.flat())
  t.is((await one.get('tasks', 't1'))?.hostCount, 3 * times)
  t.true(runs >= 3 * times)
})

test('a lock on a name makes one of many transactions decide about a missing record', async (t) => {
  const stores = await twoStores(t)
  const record = { id: '1/key', bodyHash: 'hash', createdAt: '2026-01-01T00:00:00.000Z' }
  const begin = (taskId: string) => async (tx: Transaction) => {
    await tx.lock(`idempotency/${record.id}`)
    const known = await tx.get('idempotency', record.id)
    if (known) return known.taskId
    tx.put('idempotency', { ...record, taskId })
    return taskId
  }
  const beginning = Array.from({ length: times }, (_, n) =>
    stores.map((store, at) => store.transactLocked(begin(`t${n}-${at}`))),
  )
  const answers = new Set(await Promise.all(beginning.flat()))
  t.is(answers.size, 1)
  t.deepEqual([...answers], [(await stores[0].get('idempotency', record.id))?.taskId])
})
