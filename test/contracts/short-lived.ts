import type { TestFn } from 'ava'
import type { ShortLived } from '../../src/server/storage/ports/short-lived.ts'
import { ShiftedClock } from '../helpers/faults/shifted-clock.ts'

/** Suite for every implementation of ShortLived, with a clock that the test moves forward. */
export function shortLivedContract(test: TestFn, open: (clock: ShiftedClock) => Promise<ShortLived>): void {
  async function start() {
    const clock = new ShiftedClock()
    return { clock, kept: await open(clock) }
  }

  test('S08 a value can be taken once, by the first caller', async (t) => {
    const { kept } = await start()
    const value = { sessionId: 's1', watch: false, caller: { id: 1, rights: ['execute'], name: null } }
    await kept.put('ticket', 'a', value, 30_000)
    t.is(await kept.take('ticket', 'b'), undefined)
    t.is(await kept.take('login', 'a'), undefined, 'kinds are separate')
    const taken = await Promise.all([1, 2, 3].map(() => kept.take('ticket', 'a')))
    t.deepEqual(
      taken.filter((found) => found !== undefined),
      [value],
    )
    t.is(await kept.take('ticket', 'a'), undefined)
  })

  test('a value is gone after its lifetime, or when it is forgotten', async (t) => {
    const { kept, clock } = await start()
    for (const key of ['a', 'b', 'c']) await kept.put('ticket', key, { key }, 30_000)
    clock.forward(29)
    t.deepEqual(await kept.take('ticket', 'a'), { key: 'a' })
    await kept.forget('ticket', 'b')
    t.is(await kept.take('ticket', 'b'), undefined)
    clock.forward(2)
    t.is(await kept.take('ticket', 'c'), undefined)
  })

  const window = { most: 3, life: 60_000 }

  test('S05 a key counts up to its limit within the window; the next call waits until the first has left it', async (t) => {
    const { kept, clock } = await start()
    for (const seconds of [0, 20, 20]) {
      clock.forward(seconds)
      t.is(await kept.wait('login', 'a', window), 0)
      t.is(await kept.count('login', 'a', window), 0)
    }
    const near = (wait: number, seconds: number) =>
      t.true(Math.abs(wait - seconds * 1000) < 5000, `${wait} ms`)
    near(await kept.wait('login', 'a', window), 20)
    near(await kept.count('login', 'a', window), 20)
    t.is(await kept.wait('login', 'b', window), 0, 'keys are separate')
    t.is(await kept.wait('registration', 'a', window), 0, 'kinds are separate')
    clock.forward(20.1)
    t.is(await kept.count('login', 'a', window), 0, 'refused calls do not count')
    near(await kept.wait('login', 'a', window), 20)
    await kept.forget('login', 'a')
    t.is(await kept.wait('login', 'a', window), 0)
  })

  test('a spaced limit allows a burst, and then one call per lifetime', async (t) => {
    const { kept, clock } = await start()
    const rate = { most: 3, life: 30_000, spaced: true }
    const taken = async () => {
      let count = 0
      while ((await kept.count('registration', 'a', rate)) === 0) count++
      return count
    }
    t.is(await taken(), 3)
    clock.forward(29)
    t.is(await taken(), 0)
    clock.forward(2)
    t.is(await taken(), 1)
    clock.forward(62)
    t.is(await taken(), 2)
    clock.forward(600)
    t.is(await taken(), 3)
  })

  test('concurrent calls are counted one by one', async (t) => {
    const { kept } = await start()
    const waits = await Promise.all(Array.from({ length: 20 }, () => kept.count('login', 'a', window)))
    t.is(waits.filter((wait) => wait === 0).length, 3)
  })

  test('S10 the oldest keys are evicted past the limit, and keys of other kinds stay', async (t) => {
    const { kept } = await start()
    await kept.put('ticket', 'mine', { mine: true }, 600_000)
    for (let key = 0; key < 12_000; key += 100)
      await Promise.all(
        Array.from({ length: 100 }, (_, n) =>
          kept.count('login', String(key + n), { most: 1, life: 600_000 }),
        ),
      )
    t.is(await kept.wait('login', '0', { most: 1, life: 600_000 }), 0)
    t.true((await kept.wait('login', '11999', { most: 1, life: 600_000 })) > 0)
    t.deepEqual(await kept.take('ticket', 'mine'), { mine: true })
  })
}
