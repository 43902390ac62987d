import test from 'ava'
import { fitsPattern } from '../../../src/core/script/param-pattern.ts'
import { parseSelector } from '../../../src/core/selector/parse.ts'

/** Milliseconds that `work` takes. */
function timeOf(work: () => void): number {
  const began = performance.now()
  work()
  return performance.now() - began
}

test('A15 no pattern takes two seconds for any value', (t) => {
  const value = `${'a'.repeat(255)}!`
  for (const pattern of [
    '(a+)+',
    '(a|a)*b',
    '(a|aa)+$',
    '([a-z]+)*\\d',
    '(?:a?){100}a{100}',
    '.*.*.*.*.*=.*',
    '(\\w+\\s?)*!!',
  ])
    t.true(timeOf(() => fitsPattern(pattern, value)) < 2_000, pattern)
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
    const took = timeOf(() => {
      for (const text of texts) t.throws(() => parseSelector(text, 'target.selector'))
    })
    t.true(took < within, `${took.toFixed(0)} ms`)
  })
