import test from 'ava'
import { areUnknownNames, foldUnknownNames } from '../../../src/core/text/unknown-names.ts'

const faults = (...messages: string[]) => messages.map((message) => ({ field: 'selector', message }))

test('unknown names of one kind share one heading; what the server left out comes last', (t) => {
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

test('faults of another kind are not about unknown names alone', (t) => {
  t.false(areUnknownNames(faults('no such host: web4', 'must not be blank')))
  t.false(areUnknownNames(faults('and 3 more that do not exist')))
  t.false(areUnknownNames([]))
})
