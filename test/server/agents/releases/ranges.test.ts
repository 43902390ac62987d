import test from 'ava'
import { rangeOf } from '../../../../src/server/http/served-files.ts'

const cases: readonly (readonly [header: string | undefined, wanted: ReturnType<typeof rangeOf>])[] = [
  [undefined, null],
  ['bytes=0-', { first: 0, last: 99 }],
  ['bytes=0-0', { first: 0, last: 0 }],
  ['bytes=90-200', { first: 90, last: 99 }],
  ['bytes=-10', { first: 90, last: 99 }],
  ['bytes=-500', { first: 0, last: 99 }],
  ['bytes=100-', 'unsatisfiable'],
  ['bytes=-0', 'unsatisfiable'],
  ['bytes=5-2', null],
  ['bytes=-', null],
  ['bytes=0-1,5-6', null],
  ['lines=1-2', null],
]
for (const [header, wanted] of cases)
  test(`the range ${header} of 100 bytes is ${JSON.stringify(wanted)}`, (t) =>
    t.deepEqual(rangeOf(header, 100), wanted))
