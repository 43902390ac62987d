import test from 'ava'
import { areUnknownNames, foldUnknownNames } from '../../../src/core/text/unknown-names.ts'

const faults = (...messages: string[]) => messages.map((message) => ({ field: 'selector', message }))

test("unknown names of one kind are listed together; the server's count of further names comes last", (t) => {
  const many = faults(
    'no such host: web4',
    'no such cluster: db',
    'no such host: wbe1 (did you mean web1?)',
    'and 3 more that do not exist',
  )
  t.true(areUnknownNames(many))
  t.is(
    foldUnknownNames(many),
    'no such host: web4, wbe1 (did you mean web1?); no such cluster: db; and 3 more that do not exist',
  )
})

test('more than two unknown hosts are one node set, without suggestions', (t) => {
  const range = ['web5', 'web6', 'web7'].map((name) => `no such host: ${name} (did you mean web1?)`)
  t.is(foldUnknownNames(faults(...range)), 'no such host: web[5-7]')
  t.is(
    foldUnknownNames(faults(...range, 'and 12 more that do not exist')),
    'no such host: web[5-7]; and 12 more that do not exist',
  )
  t.regex(foldUnknownNames(faults(...range.slice(1))), /^no such host: web6 \(did you mean web1\?\), web7/)
  // The message for a name in the selector of a cluster says so.
  const within = range.map((message) => `${message} (in the selector of cluster web)`)
  t.regex(foldUnknownNames(faults(...within)), /in the selector of cluster web/)
})

test('faults that include another kind are not only about unknown names', (t) => {
  t.false(areUnknownNames(faults('no such host: web4', 'must not be blank')))
  t.false(areUnknownNames(faults('and 3 more that do not exist')))
  t.false(areUnknownNames([]))
})
