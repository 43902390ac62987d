import test from 'ava'
import { Allowance } from '../../src/core/rates.ts'

test('each key may take its burst at once, then one per period; unused allowance does not accumulate', (t) => {
  const allowance = new Allowance(3, 10)
  const taken = (now: number, key = 'a') => allowance.take(key, now)
  t.deepEqual([taken(0), taken(0), taken(0), taken(0)], [0, 0, 0, 10])
  t.is(taken(0, 'b'), 0)
  t.deepEqual([taken(4), taken(10), taken(10)], [6, 0, 10])
  t.deepEqual([taken(1000), taken(1000), taken(1000), taken(1000)], [0, 0, 0, 10])
})

test('spending beyond the allowance is a debt', (t) => {
  const allowance = new Allowance(3, 10)
  t.deepEqual(
    [allowance.spend('a', 3, 0), allowance.spend('a', 2, 0), allowance.spend('a', 1, 100)],
    [0, 20, 0],
  )
  t.is(allowance.spend('b', 1, 0), 0)
  t.is(allowance.wait('a', 100), 0)
})
