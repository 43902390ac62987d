import test from 'ava'
import { RE2JS } from 're2js'
import { compareParams, declaredFaults, patternsOf } from '../../../src/core/scripts/declared-params.ts'

const none = { required: false, secret: false, default: null, pattern: null, description: '' }

test('A15 only the first of many undeclared params are compared with declared ones, and all are named', (t) => {
  let read = 0
  const declared = Array.from({ length: 200 }, (_, at) => ({
    ...none,
    name: {
      toString: () => '',
      toLowerCase() {
        read++
        return `DECLARED_${at}`.toLowerCase()
      },
    } as unknown as string,
  }))
  const params = new Map(Array.from({ length: 1_000 }, (_, at) => [`DECLARE_${at}`, 'x']))
  const found = compareParams(declared, params, new Map(), () => true)
  const faults = declaredFaults('deploy', declared, new Map(), found)
  t.is(faults.length, 1_000)
  t.is(read, 10 * 200)
  t.deepEqual(faults[10], { field: 'params.DECLARE_10', message: 'is not a param of deploy' })
})

const param = (pattern: string, value: string | null = null) => ({ name: 'P', pattern, default: value })
const fitsPattern = async (pattern: string, value: string) =>
  (await patternsOf([param(pattern)])).fits(pattern, value)

test('A15 a pattern must match the whole value', async (t) => {
  t.true(await fitsPattern('\\d+(\\.\\d+)*', '1.20.3'))
  for (const value of ['1.', 'x1', '1\n', '', '1.2; reboot'])
    t.false(await fitsPattern('\\d+(\\.\\d+)*', value), value)
  t.true(await fitsPattern('prod|test', 'test'))
  t.false(await fitsPattern('prod|test', 'production'))
  t.false(await fitsPattern('a*', 'a'.repeat(257)), 'a value beyond the matched length never fits')
})

test('A15 a pattern that is invalid in RE2, too large or does not match its default is reported', async (t) => {
  const cases: [pattern: string, fault: RegExp | null, value?: string][] = [
    ['[a-z]+', null],
    ['[a-z]+', null, 'info'],
    ['[a-z]+', /^the pattern of P does not match the default$/, 'INFO'],
    ['(a', /^the pattern of P is not valid in RE2: .*missing/],
    ['(a)\\1', /not valid in RE2/],
    ['a(?=b)', /not valid in RE2/],
    ['a{1000}', /^the patterns up to that of P are too large: use smaller counts/],
    ['(a{30}){30}', null],
    ['((a{100}){100}){100}', /not valid in RE2|too large/],
    ['a{1000}b{1000}'.repeat(14), /too large/],
    [`(?:${'a?'.repeat(95)}){1000}`, /^the pattern of P is too large: use smaller counts in/],
    [`(?:${'[ab]{2,3}'.repeat(9)}){9}{9}{9}`, /^the pattern of P is too large/],
    ['[\\pL\\PN]', null],
    [`(?i)[${'\\pL\\PN'.repeat(32)}]`, /has \(\?i\) with/],
    [`[${'\\pL\\PN'.repeat(32)}]`, null],
    [`(?i)[${'B-\u{1e900}'.repeat(40)}]`, /has \(\?i\) with/],
    ['(?s-i)\\x{10ffff}', /has \(\?i\) with/],
    ['(?i)[a-z]+\\d{4}-\\d{2}', null],
    ['[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', null],
    ['\\d{1,3}(\\.\\d{1,3}){3}', null],
    ['größe|ü{2}', null],
  ]
  for (const [pattern, fault, value] of cases) {
    const { faults } = await patternsOf([param(pattern, value ?? null)])
    if (fault === null) t.deepEqual(faults, [], pattern)
    else t.regex(faults.join(), fault, pattern)
  }
})

test('A15 no pattern is slow for any value', async (t) => {
  const value = `${'a'.repeat(255)}!`
  for (const pattern of [
    '(a+)+',
    '(a|a)*b',
    '(a|aa)+$',
    '([a-z]+)*\\d',
    '(?:a?){100}a{100}',
    '.*.*.*.*.*=.*',
    '(\\w+\\s?)*!!',
  ]) {
    t.deepEqual((await patternsOf([param(pattern)])).faults, [], pattern)
    // A backtracking engine would not finish the first of these.
    t.false(await fitsPattern(pattern, value), pattern)
  }
})

test.serial(
  'A15 a script has at most 20 patterns, and compiling stops once their size limit is exceeded',
  async (t) => {
    const many = await patternsOf(Array.from({ length: 21 }, () => param('(')))
    t.deepEqual(many.faults, ['a script has at most 20 patterns, not 21'])
    const compile = RE2JS.compile.bind(RE2JS)
    let compiled = 0
    t.teardown(() => {
      RE2JS.compile = compile
    })
    RE2JS.compile = (...given: Parameters<typeof compile>) => {
      compiled++
      return compile(...given)
    }
    const large = await patternsOf(Array.from({ length: 20 }, () => param('a{400}')))
    t.deepEqual(large.faults, ['the patterns up to that of P are too large: use smaller counts in {…}'])
    t.is(compiled, 3)
  },
)
