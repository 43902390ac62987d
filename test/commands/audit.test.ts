import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import { chain, facts } from '../helpers/audit/audit-lines.ts'
import { startTestServer } from '../helpers/servers/server.ts'

const sound = chain(6, (at) => facts({ action: at === 0 ? 'audit.begin' : `step.${at}` }))

/** Runs `audit verify` on a log with these lines. */
async function verify(t: ExecutionContext, lines: readonly string[], ...more: string[]) {
  const home = temporaryDirectory(t)
  const file = join(home, 'audit.log')
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''))
  return runRsm(['audit', 'verify', '--file', file, ...more], cleanEnv(home))
}
const headAt = (count: number) => `${count}:${sound.heads[count]?.hash}`

test('audit verify prints the entries and the head of a sound log, and finds an earlier head in it', async (t) => {
  const ran = await verify(t, sound.lines)
  t.is(ran.stdout, `the audit log is sound: 6 entries, head ${headAt(6)}\n`, ran.stderr)
  t.is(ran.exit, 0)
  t.is((await verify(t, sound.lines, '--head', headAt(4))).exit, 0)
  const json = await verify(t, sound.lines, '--json')
  t.deepEqual(JSON.parse(json.stdout), { entries: 6, head: headAt(6) })
})

const faults: readonly (readonly [what: string, lines: string[], more: string[], said: RegExp])[] = [
  [
    'one byte changed',
    sound.lines.with(3, (sound.lines[3] ?? '').replace('step.3', 'step.2')),
    [],
    /^rsm: the audit log is not what was written: line 4 does not match its hash: entry 4 or an earlier one was changed\n/,
  ],
  ['a line removed', sound.lines.toSpliced(2, 1), [], /: line 3 holds entry 4: entry 3 is missing before it/],
  [
    'the tail cut, with a head noted earlier',
    sound.lines.slice(0, 4),
    ['--head', headAt(6)],
    /: the log ends at entry 4, the head noted has 6: its end was cut off\n/,
  ],
]
for (const [what, lines, more, said] of faults)
  test(`S11 audit verify on a log with ${what} reports the place, and exits with 6`, async (t) => {
    const ran = await verify(t, lines, ...more)
    t.regex(ran.stderr, said)
    t.is(ran.stdout, '')
    t.is(ran.exit, 6)
  })

test('audit verify exits with 2 for a malformed head, and with 5 for a path without a log', async (t) => {
  t.is((await verify(t, sound.lines, '--head', 'nonsense')).exit, 2)
  const home = temporaryDirectory(t)
  const ran = await runRsm(['audit', 'verify', '--file', home], cleanEnv(home))
  t.is(ran.exit, 5)
  t.regex(ran.stderr, /there is no audit log at/)
})

test('S11 audit list and verify work with a real server; verify finds a log edited on its disk', async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '10.0.0.1' })
  await server.api('POST', '/api/auth/login', { username: 'admin', password: 'wrong' })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: server.token })
  const listed = await runRsm(['audit', 'list', '--utc', '--limit', '2'], env)
  t.regex(
    listed.stdout,
    /^ID +TIME +ACTOR +IP +ACTION +OBJECT +OUTCOME +WHAT\n6 +\S+ \S+Z +anonymous +127\.0\.0\.1 +user\.login +user admin +REFUSED +[^\n]+\n5 +.* admin +127\.0\.0\.1 +host\.create +host web1 +SUCCESS +web1\n$/,
    listed.stderr,
  )
  t.is(listed.stderr, 'rsm: 2 of 6 entries shown (--limit)\n')
  const filtered = await runRsm(['audit', 'list', '--object', 'host:1', '--since', '5m', '--json'], env)
  t.is(JSON.parse(filtered.stdout).totalElements, 1)
  const until = await runRsm(['audit', 'list', '--until', '2026-01-01 00:00', '--json'], env)
  t.is(JSON.parse(until.stdout).totalElements, 0, until.stderr)
  const bad = await runRsm(['audit', 'list', '--since', '2026-13-01'], env)
  t.is(bad.exit, 2)
  t.regex(bad.stderr, /--since takes a time, not 2026-13-01/)

  const remote = await runRsm(['audit', 'verify'], env)
  t.regex(remote.stdout, /^the audit log is sound: 6 entries, head 6:[0-9a-f]{64}\n$/, remote.stderr)
  t.is((await runRsm(['audit', 'verify', '--file', server.dataDir], env)).stdout, remote.stdout)
  const path = join(server.dataDir, 'audit', 'audit.log')
  writeFileSync(path, readFileSync(path, 'utf8').replace('"web1"', '"web9"'))
  const edited = await runRsm(['audit', 'verify'], env)
  t.is(edited.exit, 6)
  t.regex(edited.stderr, /line 5 does not match its hash: entry 5 or an earlier one was changed/)
})

test('S11 the head that a server logs when it stops reveals a tail cut later', async (t) => {
  const home = temporaryDirectory(t)
  const data = join(home, 'data')
  const env = cleanEnv(home, { RSM_ADMIN_PASSWORD: 'correct horse' })
  const server = startRsm(['server', 'start', '--port', '0', '--data-dir', data, '--log-level', 'INFO'], env)
  t.teardown(() => server.child.kill('SIGKILL'))
  await server.shows('listening on')
  server.child.kill('SIGTERM')
  const { stderr } = await server.done
  const heads = [...stderr.matchAll(/"auditHead":"([^"]+)","msg":"audit head"/g)].map(
    (found) => found[1] ?? '',
  )
  t.is(heads.length, 2, stderr)
  const head = heads[1] ?? ''
  const verify = () => runRsm(['audit', 'verify', '--file', data, '--head', head], env)
  t.is((await verify()).stdout, `the audit log is sound: 4 entries, head ${head}\n`)
  const path = join(data, 'audit', 'audit.log')
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  writeFileSync(path, `${lines.slice(0, -1).join('\n')}\n`)
  const cut = await verify()
  t.is(cut.exit, 6)
  t.regex(cut.stderr, /the log ends at entry 3, the head noted has 4: its end was cut off/)
})

test('audit list shows the excluded hosts of a task on all hosts', async (t) => {
  const server = await startTestServer(t)
  await server.enroll('web1')
  const target = { all: true, exclude: ['@*'] }
  await server.api('POST', '/api/tasks', { script: { content: 'true' }, target })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: server.token })
  const listed = await runRsm(['audit', 'list', '--action', 'task.create'], env)
  t.regex(listed.stdout, / FAILED +true, on all hosts, except @\*, /, listed.stderr)
})
