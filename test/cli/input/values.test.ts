import test from 'ava'
import {
  parseBatchSize,
  parseDuration,
  parseLifetime,
  parseLimits,
  parsePairs,
  parseStrategy,
  parseTime,
} from '../../../src/cli/input/values.ts'
import { RsmError } from '../../../src/core/errors.ts'

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
  test(`"${text}" is not a duration`, (t) => {
    t.throws(() => parseDuration(text), { instanceOf: RsmError })
  })

test('a lifetime needs a unit: a bare number could be minutes, hours or days', (t) => {
  t.is(parseLifetime('--expires', '45d'), 45 * 86_400)
  t.is(parseLifetime('--expires', '1h30m'), 5400)
  for (const [text, hint] of [
    ['7', 'write 7m, 7h or 7d'],
    ['0.5', 'write 0.5m, 0.5h or 0.5d'],
    ['soon', 'write 5m, 5h or 5d'],
    ['', 'write 5m, 5h or 5d'],
  ] as const) {
    const error = t.throws(() => parseLifetime('--expires', text), { instanceOf: RsmError })
    t.is(error.hint, hint)
    t.regex(error.message, /^--expires takes a time with its unit, not /)
  }
})

test('a batch size is a number, a percentage, or a list for canaries', (t) => {
  t.is(parseBatchSize('5'), 5)
  t.is(parseBatchSize('25%'), '25%')
  t.deepEqual(parseBatchSize('1,10%,50%'), [1, '10%', '50%'])
  for (const bad of ['half', '0', '0%', '1,0%', '150%', '1,', ''])
    t.throws(() => parseBatchSize(bad), { instanceOf: RsmError, message: /--batch-size takes/ }, bad)
})

test('the value of a parameter may be empty and may hold an equals sign', (t) => {
  t.deepEqual(parsePairs('-p', ['A=', 'B=x=y']), { A: '', B: 'x=y' })
  t.throws(() => parsePairs('-p', ['A']), { instanceOf: RsmError })
})

test('a strategy may be written in any case', (t) => {
  t.is(parseStrategy('Rolling'), 'ROLLING')
  t.throws(() => parseStrategy('random'), { instanceOf: RsmError })
})

for (const [text, time] of [
  ['2026-11-21T02:25:15.250Z', '2026-11-21T02:25:15.250Z'],
  ['2026-11-21 03:25:15+01:00', '2026-11-21T02:25:15.000Z'],
  ['2026-11-21 02:25', '2026-11-21T02:25:00.000Z'],
  ['2026-11-21', '2026-11-21T00:00:00.000Z'],
] as const)
  test(`the time ${text} is ${time} if times are in UTC`, (t) => t.is(parseTime('--from', text, true), time))

test('a time without an offset is local', (t) => {
  t.is(parseTime('--from', '2026-11-21 02:25', false), new Date(2026, 10, 21, 2, 25).toISOString())
})

for (const text of ['', 'yesterday', '2026-13-01', '2026-11-21 25:00', '1h', '21.11.2026'])
  test(`"${text}" is not a time`, (t) => {
    t.throws(() => parseTime('--from', text, true), { instanceOf: RsmError, message: /--from/ })
  })

test('limits are parsed with their units; the error for an invalid limit names the option and an example', (t) => {
  t.deepEqual(parseLimits(['memory=512M', 'processes=100', 'cpu=50%']), {
    memoryMB: 512,
    processes: 100,
    cpuPercent: 50,
  })
  for (const [word, memoryMB] of [
    ['memory=2G', 2048],
    ['memory=1t', 1024 ** 2],
    ['memory=64MiB', 64],
  ] as const)
    t.deepEqual(parseLimits([word]), { memoryMB })
  t.deepEqual(parseLimits([]), {})
  for (const word of ['memory', 'memory=', 'memory=64', 'memory=64K', 'processes=0', 'cpu=2', 'disk=1G']) {
    const fault = t.throws(() => parseLimits([word]), { message: /^--limit / })
    t.regex((fault as RsmError).hint ?? '', /--limit memory=512M/)
  }
})
