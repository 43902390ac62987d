import test from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { failureOf, failureText } from '../../../src/ui/command/failure.ts'

const failure = (message: string, hint: string) => failureOf(new RsmError('usage', message, { hint }))

test('on a narrow terminal message and hint are broken at their words, and further lines stand in', (t) => {
  const away = failure(
    'cannot reach https://rsm.example.org: connection refused',
    'name the server in NO_PROXY, or trust it with --ca-file',
  )
  const lines = [
    'rsm: cannot reach',
    '       https://rsm.example.org: connection',
    '       refused',
    '     name the server in NO_PROXY, or',
    '       trust it with --ca-file',
    '',
  ]
  t.deepEqual(failureText(away, 42).split('\n'), lines)
  t.is(failureText(away, 61).split('\n').length, 3)
  for (const columns of [undefined, 20]) t.is(failureText(away, columns).split('\n').length, 3)
})

for (const [hint, lines] of [
  [
    'rsm login https://rsm.example.org, or set RSM_TOKEN',
    ['rsm login https://rsm.example.org,', 'or set RSM_TOKEN'],
  ],
  [
    'run rsm as that user, or: chown -R deploy /srv/rsm/agent',
    ['run rsm as that user, or:', 'chown -R deploy /srv/rsm/agent'],
  ],
  [
    'make one with `rsm hosts join --replace web1`, then go on',
    ['make one with', '`rsm hosts join --replace web1`,', 'then go on'],
  ],
] as const)
  test(`no line is broken in a command: ${hint}`, (t) => {
    const [, ...shown] = failureText(failure('x', hint), 38).trimEnd().split('\n')
    t.deepEqual(
      shown.map((line) => line.trim()),
      lines,
    )
  })
