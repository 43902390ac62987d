import test from 'ava'
import { batched } from '../../../../../src/server/storage/postgres/connection/batched.ts'

test('items that arrive during a batch go together in the next one, in order', async (t) => {
  const batches: number[][] = []
  const double = batched(async (items: readonly number[]) => {
    batches.push([...items])
    await new Promise((resolve) => setImmediate(resolve))
    return items.map((item) => item * 2)
  }, 3)
  const first = double(1)
  await new Promise((resolve) => setImmediate(resolve))
  t.deepEqual(await Promise.all([first, double(2), double(3), double(4), double(5)]), [2, 4, 6, 8, 10])
  t.deepEqual(batches, [[1], [2, 3, 4], [5]])
})

test('a failed batch rejects each of its items, and the next batch succeeds', async (t) => {
  const run = batched(async (items: readonly number[]) => {
    if (items.includes(0)) throw new Error('refused')
    return items
  })
  const results = await Promise.allSettled([run(0), run(1)])
  t.deepEqual(
    results.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  t.is(await run(2), 2)
})
