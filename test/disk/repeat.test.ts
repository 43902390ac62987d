import { setImmediate } from 'node:timers/promises'
import test from 'ava'
import { repeat } from '../../src/disk/clock.ts'

/** Work that the test ends or makes fail. */
function steered() {
  const ends: ((error?: Error) => void)[] = []
  const work = () =>
    new Promise<void>((resolve, reject) => {
      ends.push((error) => (error ? reject(error) : resolve()))
    })
  return { ends, work }
}

test('work runs again after its interval, even after a failed run, and never twice at once', async (t) => {
  const { ends, work } = steered()
  const failures: unknown[] = []
  const begun = async (runs: number) => {
    while (ends.length < runs) await setImmediate()
  }
  const repeated = repeat(1, work, (error) => failures.push(error))
  const first = repeated.now()
  t.is(repeated.now(), first)
  const failure = new Error('the store is unavailable')
  ends[0]?.(failure)
  await first
  t.deepEqual(failures, [failure])
  await begun(2)
  const late = performance.now() + 20
  while (performance.now() < late) await setImmediate()
  t.is(ends.length, 2, 'the second run has not ended')
  ends[1]?.()
  await begun(3)
  ends[2]?.()
  await repeated.stop()
  t.is(failures.length, 1)
})

test('a stop waits for the current run, and no other run begins', async (t) => {
  const { ends, work } = steered()
  const repeated = repeat(1, work, (error) => t.fail(String(error)))
  void repeated.now()
  let isStopped = false
  const stopping = repeated.stop().then(() => {
    isStopped = true
  })
  await setImmediate()
  t.false(isStopped)
  ends[0]?.()
  await stopping
  const late = performance.now() + 20
  while (performance.now() < late) await setImmediate()
  t.is(ends.length, 1)
  await repeated.stop()
})
