import type { ShortLived } from '../../../src/server/storage/ports/short-lived.ts'
import { createShortLived } from '../../../src/server/storage/postgres/short-lived.ts'
import { shortLivedContract } from '../../contracts/short-lived.ts'
import type { ShiftedClock } from '../../helpers/faults/shifted-clock.ts'
import { type SharedPostgres, sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { type SharedStore, sharedStore } from '../../helpers/servers/shared-store.ts'

let postgres: Promise<SharedPostgres> | undefined
const ends: (() => Promise<void>)[] = []
test.after.always(async () => {
  for (const end of ends.toReversed()) await end()
})

/** Moves the store's time along with the clock. */
function following(kept: ShortLived, clock: ShiftedClock, store: SharedStore): ShortLived {
  let passed = 0
  const follow = async () => {
    const ahead = Math.round(clock.now() - Date.now())
    const more = ahead - passed
    passed = ahead
    if (more > 0) await store.forward(more)
  }
  return {
    put: (...asked) => follow().then(() => kept.put(...asked)),
    take: (...asked) => follow().then(() => kept.take(...asked)),
    count: (...asked) => follow().then(() => kept.count(...asked)),
    wait: (...asked) => follow().then(() => kept.wait(...asked)),
    forget: (...asked) => follow().then(() => kept.forget(...asked)),
  }
}

shortLivedContract(test, async (clock) => {
  postgres ??= sharedPostgres()
  const store = await sharedStore(await postgres, (end) => ends.push(end))
  const { database } = await store.server('a')
  return following(createShortLived(database), clock, store)
})

test('S05 S08 two servers count together, and a ticket of one is taken once at either', async (t) => {
  postgres ??= sharedPostgres()
  const store = await sharedStore(await postgres, (end) => ends.push(end))
  const [a, b] = [
    createShortLived((await store.server('a')).database),
    createShortLived((await store.server('b')).database),
  ]
  const rate = { most: 3, life: 60_000 }
  const waits = await Promise.all([a, b, a, b, a, b].map((its) => its.count('login', 'ada', rate)))
  t.is(waits.filter((wait) => wait === 0).length, 3)
  t.true((await b.wait('login', 'ada', rate)) > 50_000)
  await a.put('ticket', 'x', { of: 1 }, 30_000)
  const taken = await Promise.all([a, b, a, b].map((its) => its.take('ticket', 'x')))
  t.deepEqual(
    taken.filter((value) => value !== undefined),
    [{ of: 1 }],
  )
})

test('expired entries are removed from the table', async (t) => {
  postgres ??= sharedPostgres()
  const store = await sharedStore(await postgres, (end) => ends.push(end))
  const [a, b] = [
    createShortLived((await store.server('a')).database),
    createShortLived((await store.server('b')).database),
  ]
  for (let key = 0; key < 50; key++) await a.put('ticket', String(key), {}, 1000)
  await store.forward(2000)
  await b.put('ticket', 'last', {}, 1000)
  t.deepEqual(await store.ask('api', 'select key from rsm.short_lived'), [{ key: 'last' }])
})
