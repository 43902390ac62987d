import test from 'ava'
import fc from 'fast-check'
import { foldIds, hasId, unfoldIds } from '../../../src/core/tasks/id-set.ts'

test('a folded set has exactly the given ids', (t) => {
  const ids = fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 40 })
  fc.assert(
    fc.property(ids, (given) => {
      const folded = foldIds(given)
      t.deepEqual(
        unfoldIds(folded),
        [...new Set(given)].sort((a, b) => a - b),
      )
      for (let id = 1; id <= 61; id++) t.is(hasId(folded, id), given.includes(id), `${folded} ${id}`)
    }),
  )
  t.pass()
})

test('consecutive ids are folded into ranges, in order', (t) => {
  t.is(foldIds([5, 1, 2, 3, 9, 2]), '1-3,5,9')
  t.is(foldIds([]), '')
  t.is(foldIds([7]), '7')
})
