import test from 'ava'
import { showTime, withLocalTimes } from '../../../src/cli/text/time.ts'

test('A16 times within sentences are shown like other times', (t) => {
  const at = '2026-11-22T07:43:14.470Z'
  const local = showTime(at, false)
  t.is(
    withLocalTimes(`in use by pid 7 since ${at}; until ${at}.`),
    `in use by pid 7 since ${local}; until ${local}.`,
  )
  for (const text of ['', 'no time', '2026-11-22', 'since 2026-99-99T99:99:99Z'])
    t.is(withLocalTimes(text), text)
})
