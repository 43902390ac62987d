import test from 'ava'
import { createDownloadSlots } from '../../../../src/server/agents/releases/download-slots.ts'
import { ShiftedClock } from '../../../helpers/faults/shifted-clock.ts'

function world(most: number, mostOfKey: number) {
  const clock = new ShiftedClock()
  const places = createDownloadSlots({ max: most, maxPerKey: mostOfKey, clock })
  const cut: string[] = []
  const bytes = new Map<string, number>()
  const take = (key: string, name: string) =>
    places.take(key, { bytes: () => bytes.get(name) ?? 0, cut: () => cut.push(name) })
  return { clock, cut, bytes, take }
}

test('S10 a network gets its share of the download slots and leaves the rest to others', (t) => {
  const { cut, take } = world(3, 2)
  t.truthy(take('a', 'a1'))
  const free = take('a', 'a2')
  t.is(take('a', 'a3'), null)
  t.truthy(take('b', 'b1'))
  t.is(take('c', 'c1'), null)
  free?.()
  t.truthy(take('c', 'c1'))
  t.deepEqual(cut, [])
})

test('a slow download loses its slot to a waiting one, and a fast one keeps it', (t) => {
  const { clock, cut, bytes, take } = world(2, 2)
  take('a', 'slow')
  take('b', 'fast')
  clock.forward(9)
  t.is(take('c', 'early'), null, 'a rate takes its time')
  clock.forward(11)
  bytes.set('slow', 20 * 31 * 1024)
  bytes.set('fast', 20 * 33 * 1024)
  t.truthy(take('c', 'next'))
  t.deepEqual(cut, ['slow'])
  t.is(take('c', 'another'), null)
})

test('a network that fills all its slots loses only a slot of its own', (t) => {
  const { clock, cut, bytes, take } = world(8, 1)
  take('a', 'slow')
  take('b', 'fast')
  clock.forward(20)
  bytes.set('fast', 20 * 1024 * 1024)
  t.is(take('b', 'next'), null)
  t.truthy(take('a', 'own'))
  t.deepEqual(cut, ['slow'])
})
