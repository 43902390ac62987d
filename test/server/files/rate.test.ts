import test from 'ava'
import { createRate } from '../../../src/server/files/transfers.ts'

test('what goes over the rate waits as long as it takes at that rate, whoever takes it', async (t) => {
  let now = 1000
  const rate = createRate(1_000_000, () => now)
  t.is(rate.backlog, 0)
  const leave = new AbortController()
  const taken = [200_000, 300_000, 500_000].map((bytes) => rate.take(bytes, leave.signal).catch(() => 'left'))
  // 200 ms of the second are a burst.
  t.is(Math.round(rate.backlog), 800)
  now += 300
  t.is(Math.round(rate.backlog), 500)
  leave.abort()
  t.deepEqual(await Promise.all(taken), [undefined, 'left', 'left'])
  // What did not go makes nobody wait.
  t.is(rate.backlog, 0)
  now += 10_000
  t.is(rate.backlog, 0)
  // No pause, however long, lets more than the burst go at once.
  void rate.take(1_200_000, leave.signal).catch(() => undefined)
  t.is(Math.round(rate.backlog), 1000)
})

test('pieces are a tenth of a second at most, and never so small that they are all overhead', (t) => {
  const most = 64 * 1024
  t.is(createRate(1_000_000_000, () => 0).piece(most), most)
  t.is(createRate(100_000, () => 0).piece(most), 10_000)
  t.is(createRate(1, () => 0).piece(most), 1024)
})
