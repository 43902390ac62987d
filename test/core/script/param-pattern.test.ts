import test from 'ava'
import { RE2JS } from 're2js'
import { fitsPattern, patternFaults } from '../../../src/core/script/param-pattern.ts'

const declared = (pattern: string, value: string | null = null) => ({ name: 'P', pattern, default: value })

test('A15 a pattern holds for the whole value', (t) => {
  t.true(fitsPattern('\\d+(\\.\\d+)*', '1.20.3'))
  for (const value of ['1.', 'x1', '1\n', '', '1.2; reboot'])
    t.false(fitsPattern('\\d+(\\.\\d+)*', value), value)
  t.true(fitsPattern('prod|test', 'test'))
  t.false(fitsPattern('prod|test', 'production'))
  t.false(fitsPattern('a*', 'a'.repeat(257)), 'beyond what is matched nothing fits')
})

test('A15 what is no regular expression of RE2, is too large, or does not fit its own default is told', (t) => {
  const cases: [pattern: string, fault: RegExp | null, value?: string][] = [
    ['[a-z]+', null],
    ['[a-z]+', null, 'info'],
    ['[a-z]+', /^the pattern of P does not match the default$/, 'INFO'],
    ['(a', /^the pattern of P is not valid in RE2: .*missing/],
    ['(a)\\1', /not valid in RE2/],
    ['a(?=b)', /not valid in RE2/],
    ['a{1000}', /^the pattern of P is too large: count less far/],
    ['(a{30}){30}', /too large/],
    ['((a{100}){100}){100}', /not valid in RE2|too large/],
    ['a{1000}b{1000}'.repeat(14), /too large/],
    [`(?:${'a?'.repeat(95)}){1000}`, /too large/],
    [`(?:${'[ab]{2,3}'.repeat(9)}){9}{9}{9}`, /too large/],
    ['[\\pL\\PN]', null],
    [`(?i)[${'\\pL\\PN'.repeat(32)}]`, /has more than 2 of \\p and \\P/],
    [`(?i)[${'B-\u{1e900}'.repeat(40)}]`, /has \(\?i\) with/],
    ['(?s-i)\\x{10ffff}', /has \(\?i\) with/],
    ['(?i)[a-z]+\\d{4}-\\d{2}', null],
    ['[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', null],
    ['\\d{1,3}(\\.\\d{1,3}){3}', null],
    ['größe|ü{2}', null],
  ]
  for (const [pattern, fault, value] of cases) {
    const faults = patternFaults([declared(pattern, value ?? null)])
    if (fault === null) t.deepEqual(faults, [], pattern)
    else t.regex(faults.join(), fault, pattern)
  }
  t.regex(patternFaults(Array.from({ length: 10 }, () => declared('a{400}'))).join(), /too large together/)
})

test('A15 no pattern takes long for any value', (t) => {
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
    t.deepEqual(patternFaults([declared(pattern)]), [], pattern)
    // The first of these would take a backtracking engine longer than there is time.
    t.false(fitsPattern(pattern, value), pattern)
  }
})

test('A15 a script has few patterns, of which no more are compiled once a bound is passed, and each once', (t) => {
  const many = Array.from({ length: 21 }, () => declared('('))
  t.deepEqual(patternFaults(many), ['a script has at most 20 patterns, not 21'])
  const compile = RE2JS.compile.bind(RE2JS)
  let compiled = 0
  t.teardown(() => {
    RE2JS.compile = compile
  })
  RE2JS.compile = (...given: Parameters<typeof compile>) => {
    compiled++
    return compile(...given)
  }
  const large = Array.from({ length: 20 }, (_, at) => declared(`${'b'.repeat(at + 1)}a{400}`))
  t.regex(patternFaults(large).join(), /^the patterns are too large together/)
  t.is(compiled, 3)
  for (let time = 0; time < 10; time++) t.true(fitsPattern('once|again', 'again'))
  t.is(compiled, 4)
  t.regex(
    patternFaults([declared('c{600}'), declared('c{9}')]).join(),
    /^the pattern of P is too large: [^,]*$/,
  )
  t.is(compiled, 5)
})
