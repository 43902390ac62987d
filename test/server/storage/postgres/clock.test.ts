import { createStoreClock } from '../../../../src/server/storage/postgres/clock.ts'
import { sharedPostgres, postgresTest as test } from '../../../helpers/servers/postgres.ts'
import { sharedStore } from '../../../helpers/servers/shared-store.ts'

const minutes = 60_000

test('F25 servers whose clocks are ten minutes apart use the time of the store and follow it', async (t) => {
  const store = await sharedStore(await sharedPostgres(), (end) => t.teardown(end))
  const { database } = await store.server('a')
  const began = Date.now()
  const machine = { ahead: 0, now: () => Date.now() + machine.ahead, monotonic: () => performance.now() }
  const [early, late] = [
    await createStoreClock(database, { ...machine, now: () => Date.now() - 10 * minutes }),
    await createStoreClock(database, machine),
  ]
  /** The difference is at most the time that asking the store took. */
  const isNear = (clock: typeof late, time: number) =>
    t.true(Math.abs(clock.now() - time) < 500 + Date.now() - began, `${clock.now() - time} ms`)
  for (const clock of [early, late]) isNear(clock, Date.now())
  machine.ahead = 10 * minutes
  isNear(late, Date.now())
})

test('a slow answer corrects the time only as far as it proves; an answer that proves it wrong corrects it', async (t) => {
  const store = await sharedStore(await sharedPostgres(), (end) => t.teardown(end))
  const { database } = await store.server('a')
  let monotonic = 0
  const clock = await createStoreClock(database, { now: () => 0, monotonic: () => monotonic })
  const base = clock.now()
  monotonic = 10_000
  t.is(clock.now(), base + 10_000)
  clock.learn(base + 9000, 8000, 12_000)
  t.is(clock.now(), base + 10_000, 'the answer may have been sent at 9000')
  clock.learn(base + 9000, 10_000, 10_100)
  t.is(clock.now(), base + 9000)
  clock.learn(base + 600_000, 10_000, 10_010)
  t.is(clock.now(), base + 599_990)
})
