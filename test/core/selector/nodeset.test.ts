import test from 'ava'
import fc from 'fast-check'
import { RsmError } from '../../../src/core/errors.ts'
import { expandNodeset, foldNodeset } from '../../../src/core/selector/nodeset.ts'
import { name } from '../../helpers/selectors/nodesets.ts'

const folds: readonly (readonly [names: string, folded: string])[] = [
  ['', ''],
  ['web', 'web'],
  ['web1', 'web1'],
  ['web1 web2 web3 db1', 'db1,web[1-3]'],
  ['web08 web09 web10 web11', 'web[08-11]'],
  ['web9 web10', 'web[9-10]'],
  ['web1 web01', 'web[1,01]'],
  ['web99 web100 web099', 'web[99,099-100]'],
  ['r1n1 r1n2 r2n1 r2n2', 'r[1-2]n[1-2]'],
  ['r1n1 r1n2 r2n1', 'r1n[1-2],r2n1'],
  ['10.0.0.1 10.0.0.2', '10.0.0.[1-2]'],
  ['a90071992547409931 a90071992547409932', 'a90071992547409931,a90071992547409932'],
]
for (const [names, folded] of folds)
  test(`'${names}' folds to '${folded}'`, (t) => {
    t.is(foldNodeset(names.split(' ').filter(Boolean)), folded)
  })

test('a node set expands in natural order, with its operators applied', (t) => {
  t.is(expandNodeset('web[9-11]!web10,db[1,3,5-9/2]').join(' '), 'db1 db3 db5 db7 db9 web9 web11')
  t.deepEqual(expandNodeset('a1^A1'), [])
  t.deepEqual(expandNodeset('rack[1-2]n[01-02]x'), ['rack1n01x', 'rack1n02x', 'rack2n01x', 'rack2n02x'])
})

test('a node set has no groups and no wildcards', (t) => {
  for (const text of ['@web', 'web*'])
    t.regex(t.throws(() => expandNodeset(text), { instanceOf: RsmError }).message, /names only/)
})

test('expanding reverses folding', (t) => {
  fc.assert(
    fc.property(fc.array(name, { minLength: 1, maxLength: 60 }), (names) => {
      const back = expandNodeset(foldNodeset(names))
      t.deepEqual(back.sort(), [...new Set(names)].sort())
    }),
    { numRuns: 500 },
  )
})

test('a folded node set does not depend on the order of the names', (t) => {
  fc.assert(
    fc.property(fc.array(name, { minLength: 1, maxLength: 30 }), (names) => {
      t.is(foldNodeset([...names].sort()), foldNodeset(names))
    }),
    { numRuns: 500 },
  )
})
