import test from 'ava'
import { failureOf, failureText } from '../../../src/cli/command/failure.ts'
import { invalid, RsmError } from '../../../src/core/errors.ts'

const failure = (message: string, hint: string) => failureOf(new RsmError('usage', message, { hint }))

test('on a narrow terminal, message and hint wrap between words and continuation lines are indented', (t) => {
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

for (const [field, message, shown] of [
  ['cron', 'invalid value for minute: 99', '--cron: invalid value for minute: 99'],
  ['timezone', 'unknown time zone Berlin', '--tz: unknown time zone Berlin'],
  ['everySeconds', 'must be at least 1', '--every must be at least 1'],
  ['verify.intervalSeconds', 'must be at most 60', '--verify-interval must be at most 60'],
  ['params.PATH', 'must not be set', '-p PATH must not be set'],
  ['newPassword', 'must have at least 8 characters', 'new password must have at least 8 characters'],
  ['url', 'leads to 192.0.2.1', 'URL leads to 192.0.2.1'],
  ['selector', 'a bracket is not closed', 'a bracket is not closed'],
  ['target.exclude[1]', 'a bracket is not closed', 'a bracket is not closed'],
  ['target.clusters[0]', 'must have at most 128 characters', '--cluster must have at most 128 characters'],
  ['target.tags[12]', 'must have at most 512 characters', '--tag must have at most 512 characters'],
] as const)
  test(`an error in the field ${field} names the command line's option`, (t) => {
    const flags = ['cron', 'tz', 'every', 'verify-interval', 'url', 'cluster', 'tag', 'exclude']
    const found = failureOf(invalid([{ field, message }]), 'schedules:add', flags)
    t.is(found.message, shown)
    t.is(found.errors[0]?.field, field)
  })

test('the error for an empty target is a sentence', (t) => {
  const { message } = failureOf(new RsmError('not_found', 'matches no host: nothing matches zz*'))
  t.is(message, 'the target matches no host: nothing matches zz*')
})

test('the error for an unknown task suggests `rsm tasks list`', (t) => {
  t.is(failureOf(new RsmError('not_found', 'no such task: TASK')).hint, 'rsm tasks list')
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
    'make one with `rsm hosts join --replace web1`, then continue',
    ['make one with', '`rsm hosts join --replace web1`,', 'then continue'],
  ],
] as const)
  test(`a line never breaks within a command: ${hint}`, (t) => {
    const [, ...shown] = failureText(failure('x', hint), 38).trimEnd().split('\n')
    t.deepEqual(
      shown.map((line) => line.trim()),
      lines,
    )
  })
