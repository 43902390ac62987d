import test from 'ava'
import { costOf, FrameRate } from '../../../src/server/listeners/link-bounds.ts'

test('64 executions may resend all their output at once and then run at full rate', (t) => {
  const rate = new FrameRate()
  for (let frames = 0; frames < 64 * 1024; frames++) t.is(rate.take(1, 1, 0), 0)
  // Each of them sends a piece of output every 10 ms.
  for (let now = 10; now < 60_000; now += 10) t.is(rate.take(1, 64, now), 0)
})

test('S10 an agent over its rate is paused across all its links until it is within the rate; others are not', (t) => {
  const rate = new FrameRate()
  t.is(rate.take(1, 100_000, 0), 0)
  t.is(rate.take(1, 2000, 0), 300)
  t.is(rate.take(1, 2000, 0), 500)
  t.is(rate.take(2, 1, 0), 0)
  t.is(rate.take(1, 1, 1000), 0)
})

test('frames that may need a commit of their own cost more than output', (t) => {
  t.deepEqual((['SCRIPT_OUTPUT', 'SCRIPT_COMPLETE', 'SCRIPT_PHASE'] as const).map(costOf), [1, 10, 10])
})
