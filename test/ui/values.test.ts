import test from 'ava'
import { RsmError } from '../../src/core/errors.ts'
import { parseBatchSize, parseDays, parseDuration, parsePairs, parseStrategy } from '../../src/ui/values.ts'

for (const [text, seconds] of [
  ['90', 90],
  ['90s', 90],
  ['5m', 300],
  ['1h30m', 5400],
  ['2d', 172_800],
  ['0', 0],
  ['0.5', 0.5],
] as const)
  test(`the duration ${text} is ${seconds} s`, (t) => t.is(parseDuration(text), seconds))

for (const text of ['', '5x', 'm', '-5', '5 m', '1e3'])
  test(`"${text}" is no duration`, (t) => {
    t.throws(() => parseDuration(text), { instanceOf: RsmError })
  })

test('of lives a bare number is days', (t) => {
  t.is(parseDays('90'), 90)
  t.is(parseDays('45d'), 45)
  t.is(parseDays('12h'), 0.5)
  t.throws(() => parseDays('soon'), { instanceOf: RsmError })
})

test('a batch size is a number, a percentage, or a list for canaries', (t) => {
  t.is(parseBatchSize('5'), 5)
  t.is(parseBatchSize('25%'), '25%')
  t.deepEqual(parseBatchSize('1,10%,50%'), [1, '10%', '50%'])
  t.throws(() => parseBatchSize('half'), { instanceOf: RsmError })
})

test('the value of a parameter may be empty and may hold an equals sign', (t) => {
  t.deepEqual(parsePairs('-p', ['A=', 'B=x=y']), { A: '', B: 'x=y' })
  t.throws(() => parsePairs('-p', ['A']), { instanceOf: RsmError })
})

test('a strategy may be written in any case', (t) => {
  t.is(parseStrategy('Rolling'), 'ROLLING')
  t.throws(() => parseStrategy('random'), { instanceOf: RsmError })
})
