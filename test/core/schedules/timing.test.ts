import test from 'ava'
import { decide, type Present } from '../../../src/core/schedules/decide.ts'
import { jitterOf, slotsOf, type Timing, timingFaults } from '../../../src/core/schedules/timing.ts'

const minute = 60_000
const start = Date.parse('2026-11-23T00:00:00.000Z')
const iso = (milliseconds: number) => new Date(milliseconds).toISOString()
const timing = (more: Partial<Timing>): Timing => ({
  cron: null,
  everySeconds: null,
  at: null,
  timezone: 'UTC',
  from: null,
  until: null,
  jitterSeconds: 0,
  base: iso(start),
  ...more,
})

test('slots of everySeconds are counted from their base, however long ago it is', (t) => {
  const slots = slotsOf(timing({ everySeconds: 7 }))
  t.is(slots.next(start), start + 7000)
  t.is(slots.next(start + 6999), start + 7000)
  const later = start + 1_000_000 * 7000
  t.is(slots.next(later), later + 7000)
  t.deepEqual(slots.within(start, later), { first: start + 7000, last: later, count: 1_000_000 })
  t.is(slots.within(start, start + 6999), null)
})

test('`from` and `until` bound the slots, both included; `at` is one slot', (t) => {
  const from = iso(start + 10 * minute)
  const until = iso(start + 20 * minute)
  const slots = slotsOf(timing({ cron: '*/5 * * * *', from, until }))
  t.deepEqual(slots.within(start, start + 60 * minute), {
    first: start + 10 * minute,
    last: start + 20 * minute,
    count: 3,
  })
  t.is(slots.next(start + 20 * minute), null)
  const every = slotsOf(timing({ everySeconds: 300, from, until, base: from }))
  t.deepEqual(every.within(start, start + 60 * minute), slots.within(start, start + 60 * minute))
  const once = slotsOf(timing({ at: from }))
  t.is(once.next(start), start + 10 * minute)
  t.is(once.next(start + 10 * minute), null)
})

test('the first and the last slot of a cron expression missed for a year are found without counting', (t) => {
  const slots = slotsOf(timing({ cron: '*/5 * * * *', timezone: 'Europe/Berlin' }))
  const end = start + 365 * 24 * 60 * minute + 90_000
  t.deepEqual(slots.within(start, end), { first: start + 5 * minute, last: end - 90_000, count: null })
  const rare = slotsOf(timing({ cron: '0 0 1 1 *' }))
  t.deepEqual(rare.within(start, end), {
    first: Date.parse('2027-01-01T00:00:00Z'),
    last: Date.parse('2027-01-01T00:00:00Z'),
    count: 1,
  })
})

test('jitter is constant for a slot, less than its bound, and never reaches the next slot', (t) => {
  const found = new Set<number>()
  for (let slot = 0; slot < 200; slot++) {
    const jitter = jitterOf(3, start + slot * minute, 30_000)
    t.true(jitter >= 0 && jitter < 30_000)
    t.is(jitter, jitterOf(3, start + slot * minute, 30_000))
    found.add(Math.floor(jitter / 3000))
  }
  t.is(found.size, 10)
  t.not(jitterOf(3, start, 30_000), jitterOf(4, start, 30_000))
  const slots = slotsOf(timing({ cron: '0,1 0 * * *', jitterSeconds: 3600 }))
  for (let day = 0; day < 50; day++) {
    const slot = start + day * 24 * 60 * minute
    t.true(slots.dueAt(day, slot) < slot + minute)
  }
})

test('faults of a timing name their field', (t) => {
  const faults = (more: Partial<Timing>) =>
    timingFaults(timing(more), start).map(({ field, message }) => `${field}: ${message}`)
  t.deepEqual(faults({}), ['cron: give exactly one of cron, everySeconds and at'])
  t.deepEqual(faults({ cron: '* * * * *', everySeconds: 3 }), [
    'cron: give exactly one of cron, everySeconds and at',
  ])
  t.deepEqual(faults({ cron: '0 0 30 2 *' }), ['cron: never runs: no slot in 8 years'])
  t.deepEqual(faults({ cron: '* * * * *', timezone: 'Europe/Berln' }), [
    'timezone: unknown time zone Europe/Berln (did you mean Europe/Berlin?)',
  ])
  t.deepEqual(faults({ at: iso(start - 1) }), ['at: is in the past'])
  t.deepEqual(faults({ everySeconds: 60, jitterSeconds: 60 }), [
    'jitterSeconds: must be less than the interval, which is 60 s',
  ])
  t.deepEqual(faults({ cron: '0,10 * * * *', jitterSeconds: 600 }), [
    'jitterSeconds: must be less than the interval, which is 600 s',
  ])
  t.deepEqual(faults({ cron: '0 0 * * *', until: iso(start + minute) }), [
    'until: leaves no slot: the first one is later',
  ])
  t.deepEqual(faults({ everySeconds: 5, from: iso(start + 2 * minute), until: iso(start + minute) }), [
    'until: is before `from`',
  ])
  t.deepEqual(faults({ at: iso(start + minute), from: iso(start + 2 * minute) }), ['at: is before `from`'])
  t.deepEqual(faults({ everySeconds: 60, jitterSeconds: 59 }), [])
})

const everyMinute = slotsOf(timing({ everySeconds: 60 }))
const present = (more: Partial<Present>): Present => ({
  scheduleId: 1,
  slots: everyMinute,
  overlap: 'SKIP',
  missed: 'ONCE',
  missedWithinSeconds: 3600,
  cursor: start,
  queued: null,
  restoredAt: null,
  jumpedTo: null,
  isRunning: false,
  now: start + minute,
  ...more,
})
const at = (count: number) => start + count * minute
const skipped = (why: string, first: number, last = first) => ({
  first: at(first),
  last: at(last),
  count: last - first + 1,
  why,
})
const nothing = { run: null, skip: [], queued: null }

const decisions: { title: string; given: Partial<Present>; wanted: object }[] = [
  {
    title: 'no slot runs before its time',
    given: { now: at(1) - 1 },
    wanted: { ...nothing, cursor: at(0), dueAt: at(1) },
  },
  {
    title: 'a slot on time runs',
    given: {},
    wanted: { ...nothing, run: at(1), cursor: at(1), dueAt: at(2) },
  },
  {
    title: 'the newest of several due slots runs, and the others were missed',
    given: { now: at(5) + 100 },
    wanted: { ...nothing, run: at(5), skip: [skipped('MISSED', 1, 4)], cursor: at(5), dueAt: at(6) },
  },
  {
    title: 'with missed: SKIP a slot on time still runs',
    given: { missed: 'SKIP', now: at(2) + 30_000 },
    wanted: { ...nothing, run: at(2), skip: [skipped('MISSED', 1)], cursor: at(2), dueAt: at(3) },
  },
  {
    title: 'with missed: SKIP a late slot is skipped',
    given: { missed: 'SKIP', slots: slotsOf(timing({ at: iso(at(1)) })), now: at(2) + 1 },
    wanted: { ...nothing, skip: [skipped('MISSED', 1)], cursor: at(1), dueAt: null },
  },
  {
    title: 'with missed: ONCE a late slot runs within missedWithinSeconds',
    given: { slots: slotsOf(timing({ at: iso(at(1)) })), now: at(61) },
    wanted: { ...nothing, run: at(1), cursor: at(1), dueAt: null },
  },
  {
    title: 'with missed: ONCE a slot later than missedWithinSeconds is skipped',
    given: { slots: slotsOf(timing({ at: iso(at(1)) })), now: at(61) + 1 },
    wanted: { ...nothing, skip: [skipped('MISSED', 1)], cursor: at(1), dueAt: null },
  },
  {
    title: 'overlap: SKIP skips while a task runs',
    given: { isRunning: true },
    wanted: { ...nothing, skip: [skipped('OVERLAP', 1)], cursor: at(1), dueAt: at(2) },
  },
  {
    title: 'overlap: ALLOW runs while a task runs',
    given: { overlap: 'ALLOW', isRunning: true },
    wanted: { ...nothing, run: at(1), cursor: at(1), dueAt: at(2) },
  },
  {
    title: 'overlap: QUEUE queues a slot',
    given: { overlap: 'QUEUE', isRunning: true },
    wanted: { ...nothing, queued: at(1), cursor: at(1), dueAt: at(1) },
  },
  {
    title: 'overlap: QUEUE skips a second slot',
    given: { overlap: 'QUEUE', isRunning: true, cursor: at(1), queued: at(1), now: at(2) },
    wanted: { ...nothing, skip: [skipped('OVERLAP', 2)], queued: at(1), cursor: at(2), dueAt: at(1) },
  },
  {
    title: 'overlap: QUEUE queues a slot when the queued one starts',
    given: { overlap: 'QUEUE', cursor: at(1), queued: at(1), now: at(2) },
    wanted: { ...nothing, run: at(1), queued: at(2), cursor: at(2), dueAt: at(2) },
  },
  {
    title: 'a queued slot runs when the task has ended',
    given: { overlap: 'QUEUE', cursor: at(1), queued: at(1), now: at(1) + 5000 },
    wanted: { ...nothing, run: at(1), cursor: at(1), dueAt: at(2) },
  },
  {
    title: 'slots before a restore are skipped, because they may have run after the backup',
    given: { overlap: 'QUEUE', queued: at(0), restoredAt: at(3), now: at(3) },
    wanted: {
      ...nothing,
      skip: [skipped('RESTORED', 0), skipped('RESTORED', 1, 2), skipped('RESTORED', 3)],
      cursor: at(3),
      dueAt: at(4),
    },
  },
  {
    title: 'slots that a jump of the clock passed are skipped, and later ones run',
    given: { jumpedTo: at(3) + 100, now: at(4) },
    wanted: { ...nothing, run: at(4), skip: [skipped('CLOCK', 1, 3)], cursor: at(4), dueAt: at(5) },
  },
]

for (const { title, given, wanted } of decisions)
  test(`schedule slots: ${title}`, (t) => t.deepEqual(decide(present(given)), wanted as never))

test('a slot delayed by jitter waits, and earlier slots stay decided', (t) => {
  const slots = slotsOf(timing({ everySeconds: 60, jitterSeconds: 59 }))
  const due = slots.dueAt(1, at(2))
  t.true(due > at(2))
  t.like(decide(present({ slots, now: due - 1 })), { run: at(1), cursor: at(1), dueAt: due })
  t.like(decide(present({ slots, cursor: at(1), now: due })), { run: at(2), cursor: at(2) })
})
