import test from 'ava'
import { patternsOf } from '../../../src/core/scripts/declared-params.ts'
import { parseSelector } from '../../../src/core/selector/parse.ts'

test('A15 no pattern takes two seconds for any value', async (t) => {
  for (const pattern of [
    '(a+)+',
    '(a|a)*b',
    '(a|aa)+$',
    '([a-z]+)*\\d',
    '(?:a?){100}a{100}',
    '(?:a?){400}a{190}',
    '.*.*.*.*.*=.*',
    '(\\w+\\s?)*!!',
    '(x{1000}){1000}',
    'a{1000}'.repeat(28),
    `(?:${'a?'.repeat(95)}){1000}`,
    `[${'^\\PL\\PN\\PS\\PP\\PM\\PZ\\PC'.repeat(9)}]`,
    `(?i)[${'B-\u{1e900}'.repeat(39)}]`,
  ]) {
    // The maximum number of parameters that a script may declare, each different.
    const declared = Array.from({ length: 20 }, (_, at) => ({
      name: `P${at}`,
      pattern: pattern + 'z'.repeat(at),
      default: `${'a'.repeat(255)}!`,
    }))
    const began = performance.now()
    await patternsOf(declared)
    const took = performance.now() - began
    t.log(pattern.slice(0, 40), `${took.toFixed(0)} ms`)
    t.true(took < 2_000, pattern)
  }
})

for (const [what, texts, within] of [
  [
    'an expansion past 100,000 names',
    ['n[1-1000000000]', 'n[1-100001]', 'a[1-999]b[1-999]c[1-999]', 'a[1-60000],b[1-60000]'],
    2_000,
  ],
  [
    'a selector whose names grow with every bracket',
    [
      ...[50, 100, 800].map((brackets) => `a[1-90000]${'b[1]'.repeat(brackets)}`),
      `@a[1-90000]:${'b[1]'.repeat(800)}`,
      `a[1-20000]${'b'.repeat(240)},b[1-20000]${'b'.repeat(240)}`,
      `a[${'1-50000,'.repeat(1000)}1]`,
      `a${'b[1]'.repeat(800)}`,
    ],
    3_000,
  ],
] as const)
  test(`${what} is refused within ${within / 1000} s`, (t) => {
    const began = performance.now()
    for (const text of texts) t.throws(() => parseSelector(text, 'target.selector'))
    const took = performance.now() - began
    t.true(took < within, `${took.toFixed(0)} ms`)
  })
