import test from 'ava'
import { Watch } from '../../../../src/server/tasks/scheduler/watch.ts'

const second = 1000
const minute = 60 * second
const step = 5 * second

interface Host {
  /** Maximum duration of the execution in seconds; 0 means unlimited. */
  readonly longest?: number
  readonly cancelledAt?: number
  readonly isLinked?: (now: number) => boolean
  readonly sequence?: (now: number) => number
  /** Time between two checks by the server. */
  readonly gap?: (now: number) => number
}

/** When the execution of such a host is LOST, and why; null if that does not happen within a week. */
function lostAt({ longest = 3, cancelledAt, isLinked, sequence, gap }: Host): [number, string] | null {
  const watch = new Watch(longest, 0)
  for (let now = 0; now < 7 * 24 * 60 * minute; now += gap?.(now) ?? step) {
    watch.isCancelled = cancelledAt !== undefined && now >= cancelledAt
    let why: string | null = null
    if (isLinked?.(now) === false) why = watch.away(now)
    else if (watch.linked(now)) why = watch.hear(now, sequence?.(now) ?? -1)
    if (why !== null) return [now, why]
  }
  return null
}

const overdue = 'its agent reported no end within the timeout plus 10 minutes; it may still be running there'
const ignored = 'cancelled, but its agent reported no end; it may still be running there'

test('a linked host without an end is LOST after its timeout and 10 minutes', (t) => {
  t.deepEqual(lostAt({ longest: 300 }), [15 * minute + step, overdue])
  t.deepEqual(lostAt({ longest: 3 }), [10 * minute + step, overdue])
})

test('a linked host may run an execution without a timeout indefinitely', (t) => {
  t.is(lostAt({ longest: 0 }), null)
})

test('a linked host without an end is LOST a minute after a cancel, with a timeout or without', (t) => {
  t.deepEqual(lostAt({ longest: 0, cancelledAt: minute }), [2 * minute, ignored])
  t.deepEqual(lostAt({ longest: 3600, cancelledAt: minute }), [2 * minute, ignored])
})

test('a host that is disconnected when cancelled has a minute from its return', (t) => {
  const isLinked = (now: number) => now < minute || now >= 5 * minute
  t.deepEqual(lostAt({ longest: 3600, cancelledAt: 2 * minute, isLinked }), [6 * minute, ignored])
})

test('output that still arrives delays LOST, but by at most ten minutes after a cancel', (t) => {
  const spooled = (until: number) => (now: number) => Math.min(now, until)
  const [at] = lostAt({ longest: 300, sequence: spooled(30 * minute) }) ?? []
  t.is(at, 31 * minute)
  const [afterCancel] = lostAt({ longest: 0, cancelledAt: 0, sequence: spooled(5 * minute) }) ?? []
  t.is(afterCancel, 6 * minute)
  const [endless] = lostAt({ longest: 0, cancelledAt: 0, sequence: (now) => now }) ?? []
  t.is(endless, 11 * minute)
})

test('neither endless output nor endless reconnects keep an execution past twice its time and an hour', (t) => {
  const most = 2 * (10 * minute + 3 * second) + 60 * minute
  const dripping = lostAt({ sequence: (now) => now })
  t.true(dripping !== null && dripping[0] > most && dripping[0] <= most + minute + 2 * step)
  const flapping = lostAt({ isLinked: (now) => now % (9 * minute) < 10 * second })
  t.true(flapping !== null && flapping[0] <= most + 10 * minute)
  t.is(flapping?.[1], overdue)
})

test('time while a host was disconnected or suspended does not count; it gets the rest after its return', (t) => {
  const isLinked = (now: number) => now < 4 * minute || now >= 18 * minute
  const [at = 0] = lostAt({ longest: 300, isLinked }) ?? []
  t.is(at, 29 * minute + 2 * step)
})

test('after a stall of server or store, linked hosts get another minute', (t) => {
  const gap = (now: number) => (now === 2 * minute ? 60 * minute : step)
  t.deepEqual(lostAt({ longest: 300, gap }), [63 * minute, overdue])
  t.deepEqual(lostAt({ longest: 0, cancelledAt: 90 * second, gap }), [63 * minute, ignored])
})

test('time in which the server cannot store an end does not count, for linked and disconnected hosts', (t) => {
  for (const isAway of [false, true]) {
    const watch = new Watch(3, 0)
    watch.linked(step)
    for (let now = 2 * step; now <= 30 * 60 * minute; now += step) watch.pause(now)
    const now = 30 * 60 * minute + step
    t.is(isAway ? watch.away(now) : watch.linked(now) ? watch.hear(now, -1) : null, null)
    t.is(isAway ? watch.away(now + 8 * minute) : watch.linked(now + 8 * minute), isAway ? null : false)
    t.not(watch.away(now + 20 * minute), null)
  }
})

test('a disconnected host is LOST after its timeout and 10 minutes of silence, without a timeout after a day', (t) => {
  const isLinked = (now: number) => now <= minute
  t.deepEqual(lostAt({ longest: 300, isLinked }), [16 * minute + step, 'no report for 905 s'])
  t.deepEqual(lostAt({ longest: 0, isLinked }), [1441 * minute + step, 'no report for 86405 s'])
})
