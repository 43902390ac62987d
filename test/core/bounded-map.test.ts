import test from 'ava'
import { BoundedMap } from '../../src/core/bounded-map.ts'

test('a full map evicts the entry that was set longest ago, and reports it', (t) => {
  const evicted: [string, number][] = []
  const map = new BoundedMap<string, number>(2, (...entry) => evicted.push(entry))
  map.set('a', 1).set('b', 2).set('c', 3)
  t.deepEqual([...map.keys()], ['b', 'c'])
  t.deepEqual(evicted, [['a', 1]])
})

test('an entry that is set again becomes the newest, and reading it changes nothing', (t) => {
  const map = new BoundedMap<string, number>(2).set('a', 1).set('b', 2)
  t.is(map.get('b'), 2)
  map.set('a', 3)
  t.is(map.get('b'), 2)
  map.set('c', 4)
  t.deepEqual([...map.keys()], ['a', 'c'])
})

test('deleted entries make room and are not reported', (t) => {
  const evicted: string[] = []
  const map = new BoundedMap<string, number>(2, (key) => evicted.push(key)).set('a', 1).set('b', 2)
  map.delete('a')
  map.set('c', 3).set('c', 4)
  map.clear()
  t.deepEqual(evicted, [])
})
