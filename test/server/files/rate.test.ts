import test from 'ava'
import { createRate } from '../../../src/server/files/transfers.ts'

test('bytes over the rate wait as long as they take at that rate, for all callers together', async (t) => {
  let now = 1000
  const rate = createRate(1_000_000, () => now)
  t.is(rate.backlog, 0)
  const leave = new AbortController()
  const taken = [200_000, 300_000, 500_000].map((bytes) => rate.take(bytes, leave.signal).catch(() => 'left'))
  // The burst is 200 ms of the second.
  t.is(Math.round(rate.backlog), 800)
  now += 300
  t.is(Math.round(rate.backlog), 500)
  leave.abort()
  t.deepEqual(await Promise.all(taken), [undefined, 'left', 'left'])
  // Bytes that were not sent delay no one.
  t.is(rate.backlog, 0)
  now += 10_000
  t.is(rate.backlog, 0)
  // After a pause of any length, at most the burst is sent at once.
  void rate.take(1_200_000, leave.signal).catch(() => undefined)
  t.is(Math.round(rate.backlog), 1000)
})

test('pieces are at most a tenth of a second, and never so small that overhead dominates', (t) => {
  const most = 64 * 1024
  t.is(createRate(1_000_000_000, () => 0).piece(most), most)
  t.is(createRate(100_000, () => 0).piece(most), 10_000)
  t.is(createRate(1, () => 0).piece(most), 1024)
})
