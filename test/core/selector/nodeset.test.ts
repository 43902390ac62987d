import { execFileSync } from 'node:child_process'
import test from 'ava'
import fc from 'fast-check'
import { RsmError } from '../../../src/core/errors.ts'
import { expandNodeset, foldNodeset } from '../../../src/core/selector/nodeset.ts'

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

test('a node set expands in natural order, its operators worked out', (t) => {
  t.is(expandNodeset('web[9-11]!web10,db[1,3,5-9/2]').join(' '), 'db1 db3 db5 db7 db9 web9 web11')
  t.deepEqual(expandNodeset('a1^A1'), [])
  t.deepEqual(expandNodeset('rack[1-2]n[01-02]x'), ['rack1n01x', 'rack1n02x', 'rack2n01x', 'rack2n02x'])
})

test('a node set has no groups and no wildcards', (t) => {
  for (const text of ['@web', 'web*'])
    t.regex(t.throws(() => expandNodeset(text), { instanceOf: RsmError }).message, /names only/)
})

test('10,000 names of two dimensions fold quickly, regular or not', (t) => {
  const begun = performance.now()
  const grid = Array.from({ length: 10_000 }, (_, n) => `rack${n % 100}n${Math.floor(n / 100)}`)
  t.is(foldNodeset(grid), 'rack[0-99]n[0-99]')
  const sparse = grid.filter((_, n) => (n * 7919) % 3 !== 0)
  t.deepEqual(expandNodeset(foldNodeset(sparse)).sort(), sparse.sort())
  t.true(performance.now() - begun < 3000)
})

const index = fc.oneof(
  fc.integer({ min: 0, max: 30 }).map(String),
  fc.integer({ min: 0, max: 120 }).map((n) => String(n).padStart(3, '0')),
)
const part = fc.constantFrom('a', 'b', 'web', 'n-', 'x.y')
const name = fc.oneof(
  fc.tuple(part, index).map(([prefix, n]) => prefix + n),
  fc.tuple(part, index, part, index).map(([a, m, b, n]) => a + m + b + n),
  part,
)
const range = fc
  .record({
    first: fc.integer({ min: 0, max: 40 }),
    length: fc.integer({ min: 0, max: 12 }),
    step: fc.integer({ min: 1, max: 4 }),
    width: fc.constantFrom(1, 1, 3),
  })
  .map(({ first, length, step, width }) => {
    const from = String(first).padStart(width, '0')
    if (length === 0) return from
    return `${from}-${String(first + length).padStart(width, '0')}${step === 1 ? '' : `/${step}`}`
  })
const bracket = fc.array(range, { minLength: 1, maxLength: 3 }).map((ranges) => `[${ranges.join(',')}]`)
const operand = fc.oneof(
  name,
  fc.tuple(part, bracket).map(([a, x]) => a + x),
  fc.tuple(part, bracket, part).map(([a, x, b]) => a + x + b),
  fc.tuple(part, bracket, part, bracket).map(([a, x, b, y]) => a + x + b + y),
)
const nodeset = fc
  .tuple(
    operand,
    fc.array(fc.tuple(fc.constantFrom(',', '!', '&', '^', ' , ', ' ! '), operand), { maxLength: 4 }),
  )
  .map(([first, rest]) => first + rest.map(([operator, text]) => operator + text).join(''))

test('folding and expanding are each other’s inverse', (t) => {
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

/** One process for all cases: each line in is a node set, each line out its names sorted, then its folded form. */
const program = `
import sys, json
from ClusterShell.NodeSet import NodeSet, RESOLVER_NOGROUP
for line in sys.stdin:
    try:
        ns = NodeSet(json.loads(line), resolver=RESOLVER_NOGROUP)
        print(json.dumps([sorted(ns), str(ns)]))
    except Exception as error:
        print(json.dumps(str(error)))
`

function askReference(cases: readonly string[]): ([string[], string] | string)[] {
  const input = cases.map((text) => JSON.stringify(text)).join('\n')
  const output = execFileSync('/usr/bin/python3', ['-c', program], {
    input,
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
  })
  return output
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as [string[], string] | string)
}

function hasReference(): boolean {
  try {
    return askReference(['web[1-2]'])[0]?.[1] === 'web[1-2]'
  } catch {
    return false
  }
}

// Runs wherever Debian's python3-clustershell is installed; elsewhere there is nothing to compare with (2026-11-21).
const withReference = hasReference() ? test : test.skip
const seed = Number(process.env.RSM_TEST_SEED ?? Date.now() % 1_000_000)

withReference('node sets expand as ClusterShell expands them', (t) => {
  const cases = fc.sample(nodeset, { seed, numRuns: 3000 })
  const answers = askReference(cases)
  for (const [at, text] of cases.entries()) {
    const answer = answers[at]
    if (typeof answer === 'string')
      t.throws(() => expandNodeset(text), undefined, `seed ${seed}: ${text}: ${answer}`)
    else if (!t.deepEqual(expandNodeset(text).sort(), answer?.[0], `seed ${seed}: ${text}`)) return
  }
  t.log(`${cases.length} node sets, seed ${seed}`)
})

withReference('names with one number fold to the very text of ClusterShell', (t) => {
  const single = fc.tuple(part, index).map(([prefix, n]) => prefix + n)
  const cases = fc.sample(fc.array(single, { minLength: 1, maxLength: 60 }), { seed, numRuns: 2000 })
  const answers = askReference(cases.map((names) => names.join(',')))
  for (const [at, names] of cases.entries())
    if (!t.is(foldNodeset(names), answers[at]?.[1] ?? '', `seed ${seed}: ${names.join(',')}`)) return
  t.log(`${cases.length} lists, seed ${seed}`)
})

withReference('names with two numbers fold to what ClusterShell reads as the same names', (t) => {
  const cases = fc.sample(fc.array(name, { minLength: 1, maxLength: 40 }), { seed, numRuns: 1000 })
  const folded = cases.map((names) => foldNodeset(names))
  const answers = askReference([...folded, ...cases.map((names) => names.join(','))])
  let same = 0
  for (const [at, names] of cases.entries()) {
    if (
      !t.deepEqual(answers[at]?.[0], [...new Set(names)].sort() as never, `seed ${seed}: ${names.join(',')}`)
    )
      return
    if (answers[cases.length + at]?.[1] === folded[at]) same++
  }
  t.log(`${cases.length} lists, ${same} of them with the very same text, seed ${seed}`)
})
