import test from 'ava'
import type { EventType } from '../../../src/core/protocol/http/events.ts'
import { Ring } from '../../../src/server/events/ring.ts'

const all = new Set<EventType>(['host', 'task', 'cluster'])
const limits = { frames: 4, bytes: 1000, batchBytes: 10 }

function filled(texts: readonly string[], more: Partial<typeof limits> = {}): Ring {
  const ring = new Ring({ ...limits, ...more })
  for (const text of texts) ring.append('host', () => text)
  return ring
}
const textOf = (ring: Ring, number: number, types = all) =>
  ring.after(number, types).bytes?.toString() ?? null

test('a batch starts after a given number and keeps to its size limit; a larger event is sent alone', (t) => {
  const ring = filled(['aaaa', 'bbbb', 'cccc', 'd'.repeat(20)])
  t.is(textOf(ring, 0), 'aaaabbbb')
  t.deepEqual(ring.after(0, all).upTo, 2)
  t.is(textOf(ring, 2), 'cccc')
  t.is(textOf(ring, 3), 'd'.repeat(20))
  t.deepEqual(ring.after(4, all), { bytes: null, upTo: 4 })
})

test('listeners at the same position share one batch', (t) => {
  const ring = filled(['a', 'b'])
  t.is(ring.after(0, all).bytes, ring.after(0, all).bytes)
  ring.append('task', () => 'c')
  t.is(textOf(ring, 0), 'abc')
})

test('events of other types are skipped', (t) => {
  const ring = filled(['a'])
  ring.append('task', () => 't')
  ring.append('host', () => 'b')
  t.deepEqual(ring.after(0, new Set<EventType>(['task'])), { bytes: Buffer.from('t'), upTo: 3 })
  t.deepEqual(ring.after(2, new Set<EventType>(['task'])), { bytes: null, upTo: 3 })
})

for (const [bound, more] of [
  ['too many', { frames: 2 }],
  ['too large', { bytes: 8 }],
] as const)
  test(`the oldest events are evicted when there are ${bound}, and listeners that need them are behind`, (t) => {
    const ring = filled(['aaaa', 'bbbb', 'cccc'], more)
    t.is(ring.placeOf(ring.idOf(0)), 'BEHIND')
    t.is(ring.placeOf(ring.idOf(1)), 1)
    t.is(textOf(ring, 1), 'bbbbcccc')
  })

test('ids of an earlier run, future ids and malformed ids get different results', (t) => {
  const ring = filled(['a'])
  const cases: [string, unknown][] = [
    [ring.idOf(1), 1],
    [ring.idOf(0), 0],
    [ring.idOf(2), 'UNKNOWN'],
    ['0123456789ab-1', 'RESTARTED'],
    ['17', 'UNKNOWN'],
    [`${ring.epoch}-1x`, 'UNKNOWN'],
  ]
  for (const [id, place] of cases) t.is(ring.placeOf(id), place as never, id)
})

test('after forgetting, earlier positions are behind and the newest one is valid', (t) => {
  const ring = filled(['a', 'b'])
  const [before] = [ring.last]
  ring.forget()
  t.is(ring.placeOf(ring.idOf(before)), 'BEHIND')
  t.is(ring.placeOf(ring.idOf(ring.last)), ring.last)
  ring.append('host', () => 'c')
  t.is(textOf(ring, ring.last - 1), 'c')
})
