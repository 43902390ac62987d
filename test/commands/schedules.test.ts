import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { temporaryDirectory } from '../fixtures/rsm.ts'
import { commandLine } from '../helpers/clients/command-line.ts'
import { startTestServer } from '../helpers/servers/server.ts'

test('times of a schedule are shown in its time zone, and runs by hand are listed with its tasks', async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '192.0.2.1' })
  const script = { content: '# what it does\necho hello' }
  const more = { script, target: { selector: 'web1' }, queueSeconds: 0 }
  const timing = {
    cron: '30 2 * * *',
    timezone: 'Europe/Berlin',
    from: '2027-03-27T00:00:00Z',
    until: '2027-03-29T12:00:00Z',
  }
  await server.data('POST', '/api/schedules', { name: 'nightly', ...timing, ...more })
  const rsm = commandLine(t, server)
  t.is(
    (await rsm(['schedules', 'next', 'nightly', '--utc'])).stdout,
    [
      'Europe/Berlin              UTC',
      '2027-03-27 02:30:00+01:00  2027-03-27 01:30:00Z',
      '2027-03-28 03:00:00+02:00  2027-03-28 01:00:00Z',
      '2027-03-29 02:30:00+02:00  2027-03-29 00:30:00Z',
      '',
    ].join('\n'),
  )
  const { stdout: taskId } = await rsm(['schedules', 'run', 'nightly'])
  t.regex((await rsm(['tasks', 'show', taskId.trim()])).stdout, /^schedule +1, run by hand$/m)
  const shown = await rsm(['schedules', 'show', 'nightly'])
  t.regex(shown.stdout, /^runs +echo hello$/m)
  t.regex(shown.stdout, new RegExp(`task ${taskId.trim()}, run by admin`))
  t.regex((await rsm(['schedules', 'pause', 'nightly'])).stdout, /^paused nightly\n$/)
  t.regex((await rsm(['schedules', 'list'])).stdout, /^1 +nightly +30 2 \* \* \* Europe\/Berlin +paused +/m)
})

test('schedules confirm names the versions of the scripts that get the secrets', async (t) => {
  const server = await startTestServer(t)
  const script = { name: 'dump', type: 'BASH', content: 'dump' }
  const { id } = await server.data('POST', '/api/scripts', script)
  const more = {
    scriptId: id,
    verify: { scriptId: id },
    target: { selector: '@*' },
    secretParams: { KEY: 'x' },
  }
  await server.data('POST', '/api/schedules', { name: 'nightly', cron: '@yearly', ...more })
  await server.data('PATCH', `/api/scripts/${id}`, { content: 'dump all' })
  const rsm = commandLine(t, server)
  t.is((await rsm(['schedules', 'confirm', 'nightly'])).stdout, 'confirmed nightly, dump version 2\n')
})

test('names with spaces are quoted in a command to copy', async (t) => {
  const server = await startTestServer(t)
  const timing = { everySeconds: 60, enabled: false }
  const target = { selector: '@*' }
  await server.data('POST', '/api/schedules', {
    name: 'db dump',
    ...timing,
    script: { content: 'x' },
    target,
  })
  const hook = { name: 'on call', url: 'https://alerts.example.org/rsm', events: ['task.failed'] }
  await server.data('POST', '/api/webhooks', hook)
  const rsm = commandLine(t, server)
  t.regex((await rsm(['schedules', 'next', 'db dump'])).stderr, /: rsm schedules resume 'db dump'$/m)
  t.regex((await rsm(['webhooks', 'deliveries', 'on call'])).stderr, /: rsm webhooks test 'on call'$/m)
})

test('a schedule copies a file uploaded when it was added, and a tree after an edit', async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '192.0.2.1' })
  const rsm = commandLine(t, server)
  const directory = temporaryDirectory(t)
  const file = join(directory, 'motd')
  writeFileSync(file, 'welcome\n')
  const copy = ['--copy', file, '--to', '/etc/']
  const added = await rsm([
    'schedules',
    'add',
    'motd',
    '--every',
    '1h',
    '-w',
    'web1',
    ...copy,
    '--mode',
    '0644',
  ])
  t.is(added.exit, 0, added.stderr)
  const { fileId, ...how } = (await server.data('GET', '/api/schedules/1')).copy
  t.like(how, { path: '/etc/motd', kind: 'FILE', mode: '0644' })
  t.is((await server.data('GET', `/api/files/${fileId}`)).size, 8)
  const shown = (await rsm(['schedules', 'show', 'motd'])).stdout
  t.regex(shown, /^runs +copy to \/etc\/motd$/m)
  t.regex(shown, /^file +motd, 8 B, sha256 [0-9a-f]{64}$/m)
  t.regex(shown, /^mode +0644$/m)
  const edited = await rsm(['schedules', 'edit', 'motd', '--copy', directory, '--to', '/srv/site', '-r'])
  t.is(edited.exit, 0, edited.stderr)
  t.like((await server.data('GET', '/api/schedules/1')).copy, { path: '/srv/site', kind: 'TREE' })
  for (const [words, said] of [
    [['--to', '/etc/motd'], /--copy/],
    [['--copy', file], /missing --to/],
    [[...copy, '--', 'uptime'], /either --copy or a command, not both: uptime/],
    [[...copy, '--script', file], /--copy|--script/],
    [['--copy', directory, '--to', '/srv/site'], /is a directory/],
    [['--copy', file, '--to', 'etc'], /--to must be absolute/],
  ] as const) {
    const refused = await rsm(['schedules', 'edit', 'motd', ...words])
    t.is(refused.exit, 2, refused.stderr)
    t.regex(refused.stderr, said)
  }
})

test('a schedule may have stdin, limits, a rate and a secret file, and schedules show prints them', async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '192.0.2.1' })
  const rsm = commandLine(t, server)
  const file = join(temporaryDirectory(t), 'load.sql')
  writeFileSync(file, 'select 1\n')
  const add = ['schedules', 'add', 'load', '--every', '1h', '-w', 'web1', '--limit', 'memory=64M']
  const added = await rsm([...add, '--stdin', file, '--limit-rate', '1M', '--', 'psql', 'app'])
  t.is(added.exit, 0, added.stderr)
  const schedule = () => server.data('GET', '/api/schedules/1')
  const { stdin, limitRate } = await schedule()
  t.is(limitRate, 1024 * 1024)
  t.like(await server.data('GET', `/api/files/${stdin.fileId}`), { name: 'load.sql', size: 9 })
  const shown = (await rsm(['schedules', 'show', 'load'])).stdout
  t.regex(shown, /^stdin +load\.sql, 9 B, sha256 [0-9a-f]{64}$/m)
  t.regex(shown, /^limits +memory 64 MB$/m)
  t.regex(shown, /^limit rate +1\.0 MB\/s$/m)

  const edited = await rsm(['schedules', 'edit', 'load', '--stdin', '-', '--limit-rate', '2M'], {
    input: 'select 2;\n',
  })
  t.is(edited.exit, 0, edited.stderr)
  const after = await schedule()
  t.is(after.limitRate, 2 * 1024 * 1024)
  t.like(await server.data('GET', `/api/files/${after.stdin.fileId}`), { name: null, size: 10 })

  const secret = [
    'schedules',
    'add',
    'key',
    '--every',
    '1h',
    '-w',
    'web1',
    '--copy',
    file,
    '--to',
    '/etc/key',
  ]
  t.is((await rsm([...secret, '--secret'])).exit, 0)
  const { copy } = await server.data('GET', '/api/schedules/2')
  t.true((await server.data('GET', `/api/files/${copy.fileId}`)).isSecret)
  for (const [words, said] of [
    [['--copy', file, '--to', '/etc/key', '--stdin', file], /--stdin|--copy/],
    [['--secret'], /--copy/],
    [['--limit-rate', '1'], /--limit-rate takes bytes per second/],
  ] as const) {
    const refused = await rsm(['schedules', 'edit', 'load', ...words])
    t.is(refused.exit, 2, refused.stderr)
    t.regex(refused.stderr, said)
  }
})

test('an invalid schedule is refused by the command line, or by the server with the field', async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '192.0.2.1' })
  await server.data('POST', '/api/scripts', { name: 'hello', type: 'BASH', content: 'echo' })
  const rsm = commandLine(t, server)
  const add = (...words: string[]) => rsm(['schedules', 'add', 'nightly', '-w', 'web1', ...words])
  for (const [words, exit, said] of [
    [['--script', 'hello'], 2, /no times given: add --cron, --every or --at/],
    [['--every', '5m'], 2, /nothing to run/],
    [['--every', '5m', '--'], 2, /nothing to run/],
    [
      ['--every', '5m', '--script', 'hello', '--', 'uptime'],
      2,
      /either --script or a command, not both: uptime/,
    ],
    [['--every', '5m', 'uptime'], 2, /uptime/],
    [['--every', '5m', '--at', '2099-01-01', '--script', 'hello'], 2, /--at|--every/],
    [['--every', '0.5s', '--script', 'hello'], 2, /whole seconds/],
    [['--every', '5m', '--script', 'hello', '--verify-retries', '2'], 2, /--verify-retries is for --verify/],
    [['--every', '5m', '--script', 'hello', '--rollback', 'helo'], 5, /no such file or script: helo/],
    [['--cron', '* * * * * *', '--script', 'hello'], 2, /--cron takes five fields/],
    [['--cron', '0 0 30 2 *', '--script', 'hello'], 2, /cron: never runs/],
    [['--cron', '@daily', '--tz', 'Berln', '--script', 'hello'], 2, /did you mean Europe\/Berlin\?/],
    [['--cron', '@daily', '--script', 'helo'], 5, /no such file or script: helo \(did you mean hello\?\)/],
  ] as const) {
    const ran = await add(...words)
    t.is(ran.exit, exit, words.join(' '))
    t.regex(ran.stderr, said, words.join(' '))
  }
  t.is((await rsm(['schedules', 'edit', 'nightly'])).exit, 2)
  t.is((await server.data('GET', '/api/schedules')).totalElements, 0)
})

test('a schedule that runs every second is added with a warning; schedules show prints missing values as dashes', async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '192.0.2.1' })
  const rsm = commandLine(t, server)
  const add = (name: string, every: string) =>
    rsm(['schedules', 'add', name, '--every', every, '--paused', '-a', '--', 'df'])
  t.regex((await add('often', '1s')).stderr, /^rsm: warning: every 1s is up to 86,400 tasks a day/)
  t.is((await add('seldom', '1m')).stderr, '')
  t.regex((await rsm(['schedules', 'edit', 'seldom', '--every', '30s'])).stderr, /up to 2,880 tasks a day/)
  const shown = await rsm(['schedules', 'show', 'often'])
  for (const line of [/^params +-$/m, /^secret params +-$/m, /^missed +run the latest within 1h$/m])
    t.regex(shown.stdout, line)
})

test('a schedule can be added with a command, and the command changed', async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '192.0.2.1' })
  const rsm = commandLine(t, server)
  const script = async () => (await server.data('GET', '/api/schedules/1')).script
  t.is((await rsm(['schedules', 'add', 'disks', '--every', '1h', '-a', '--', 'df', '-h', '/'])).exit, 0)
  t.deepEqual(await script(), { type: 'BASH', content: 'df -h /' })
  const changed = ['schedules', 'edit', 'disks', '--type', 'python', '--', 'print(7)']
  t.is((await rsm(changed)).exit, 0)
  t.deepEqual(await script(), { type: 'PYTHON', content: 'print(7)' })
})

test("a schedule's verification and rollback scripts can be added, changed and shown", async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '192.0.2.1' })
  const { id } = await server.data('POST', '/api/scripts', { name: 'undo', type: 'BASH', content: 'true' })
  const check = join(temporaryDirectory(t), 'check.sh')
  writeFileSync(check, 'curl -fsS localhost/health\n')
  const rsm = commandLine(t, server)
  const gates = ['--verify', check, '--verify-retries', '2', '--rollback', 'undo']
  const added = await rsm([
    'schedules',
    'add',
    'deploy',
    '--every',
    '1d',
    '-w',
    'web1',
    '--script',
    'undo',
    ...gates,
  ])
  t.is(added.exit, 0, added.stderr)
  const schedule = () => server.data('GET', '/api/schedules/1')
  t.like(await schedule(), {
    verify: { script: { content: 'curl -fsS localhost/health\n' }, retries: 2 },
    rollback: { scriptId: id },
  })
  const shown = (await rsm(['schedules', 'show', 'deploy'])).stdout
  t.regex(shown, /^verify +check\.sh$/m)
  t.regex(shown, new RegExp(`^rollback +stored script ${id}$`, 'm'))
  t.is((await rsm(['schedules', 'edit', 'deploy', '--verify', 'undo', '--verify-interval', '1s'])).exit, 0)
  t.deepEqual((await schedule()).verify, { scriptId: id, intervalSeconds: 1 })
})
