import test from 'ava'
import fc from 'fast-check'
import { compareNatural, naturalKey } from '../../../src/core/selector/natural-order.ts'

test('numbers in names compare as numbers, and case is ignored', (t) => {
  const sorted = ['a', 'A1', 'a01', 'a1b', 'a2', 'a10', 'a10b2', 'a10b10', 'b', 'web-2', 'web2', 'web10']
  t.deepEqual([...sorted].reverse().sort(compareNatural), sorted)
})

test('numbers of any length compare exactly', (t) => {
  t.true(compareNatural('n90071992547409931', 'n90071992547409932') < 0)
  t.true(compareNatural(`n${'9'.repeat(200)}`, `n1${'0'.repeat(200)}`) < 0)
})

test('the order is total: antisymmetric, transitive, and equal only for the same name', (t) => {
  const name = fc.stringMatching(/^[abB012.-]{0,6}$/)
  fc.assert(
    fc.property(name, name, name, (a, b, c) => {
      const ab = Math.sign(compareNatural(a, b))
      if (ab !== -Math.sign(compareNatural(b, a)) && ab !== 0) return false
      if ((ab === 0) !== (a === b)) return false
      return !(ab < 0 && compareNatural(b, c) < 0) || compareNatural(a, c) < 0
    }),
    { numRuns: 5000 },
  )
  t.pass()
})

test('the bytes of sort keys have the order of the names', (t) => {
  const likeNames = fc.stringMatching(/^[abB012.-]{0,8}$/)
  const any = fc.string({ unit: 'binary', maxLength: 8 })
  const halves = fc
    .array(fc.constantFrom('\ud800', '\udfff', '\0', '\u0001', 'a', 'A', '0', '1'))
    .map((all) => all.join(''))
  const name = fc.oneof(likeNames, any, halves)
  fc.assert(
    fc.property(name, name, (a, b) => {
      const bytes = (text: string) => Buffer.from(naturalKey(text))
      return bytes(a).compare(bytes(b)) === Math.sign(compareNatural(a, b))
    }),
    { numRuns: 5000 },
  )
  t.pass()
})
