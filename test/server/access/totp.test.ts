import test from 'ava'
import {
  codeAt,
  newRecoveryCodes,
  newSecret,
  plainCode,
  stepOf,
  uriOf,
} from '../../../src/server/access/totp.ts'

/**
 * The secret of RFC 6238 appendix B (`12345678901234567890`) in base32. The codes are the last six of its eight
 * digits.
 */
const secret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
const codes: readonly (readonly [seconds: number, code: string])[] = [
  [59, '287082'],
  [1111111109, '081804'],
  [1111111111, '050471'],
  [1234567890, '005924'],
  [2000000000, '279037'],
  [20000000000, '353130'],
]

test('codes match the test vectors of RFC 6238', (t) => {
  for (const [seconds, code] of codes) t.is(codeAt(secret, Math.floor(seconds / 30)), code)
})

test('a code is accepted in its own 30 s and in the 30 s before and after', (t) => {
  const step = 41_152_263
  const code = codeAt(secret, step)
  const at = (offset: number) => stepOf(secret, code, (step + offset) * 30_000 + 15_000)
  t.deepEqual([-2, -1, 0, 1, 2].map(at), [null, step, step, step, null])
  for (const wrong of ['', '12345', '1234567', 'ABCDEF', `${code} `])
    t.is(stepOf(secret, wrong, step * 30_000), null, wrong)
})

test('secrets and recovery codes are random text that apps and people can read', (t) => {
  t.regex(newSecret(), /^[A-Z2-7]{32}$/)
  t.not(newSecret(), newSecret())
  const recovery = newRecoveryCodes(10)
  t.is(new Set(recovery).size, 10)
  for (const code of recovery) t.regex(code, /^[A-Z2-7]{5}-[A-Z2-7]{5}$/)
  t.is(plainCode(' abcde-23456 '), 'ABCDE23456')
})

test('the URI contains the names of user and server, with special characters escaped', (t) => {
  const uri = new URL(uriOf(secret, 'eve?secret=x&', 'rsm.example.org'))
  t.is(uri.searchParams.get('secret'), secret)
  t.is(uri.searchParams.get('issuer'), 'rsm rsm.example.org')
  t.is(decodeURIComponent(uri.pathname), '/rsm rsm.example.org:eve?secret=x&')
})
