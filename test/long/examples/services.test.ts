import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'

/** Starts a server of the real binary on a store of its own. */
async function startServer(t: ExecutionContext, home: string) {
  // A free inspector port, because a port in use would hide that a debugger opens.
  const env = cleanEnv(home, {
    RSM_ADMIN_PASSWORD: 'correct horse',
    RSM_LOG_LEVEL: 'ERROR',
    NODE_OPTIONS: '--inspect-port=0',
  })
  const server = startRsm(['server', 'start', '--port', '0', '--data-dir', join(home, 'data'), '--json'], env)
  t.teardown(() => server.child.kill('SIGKILL'))
  await server.shows('"url"')
  return { ...server, env, url: (JSON.parse(server.out.stdout) as { url: string }).url }
}

test('the real binary works end to end: server start, login, hosts join, agent run, exec; SIGUSR1 opens no debugger', async (t) => {
  const home = temporaryDirectory(t)
  const server = await startServer(t, home)
  const { url, env } = server
  const user = { ...env, RSM_ADMIN_PASSWORD: '' }
  const login = await runRsm(['login', url, '--username', 'admin', '--password-stdin'], user, 'correct horse')
  t.is(login.exit, 0, login.stderr)
  const joined = await runRsm(['hosts', 'join', '--tag', 'role=test'], user)
  const line = /^ RSM_AGENT_ENROLL_TOKEN=(\S+) rsm agent run --url (\S+)\n$/.exec(joined.stdout)
  t.is(line?.[2], url)
  const enrollment = { ...user, RSM_AGENT_ENROLL_TOKEN: line?.[1] ?? '' }
  const agent = startRsm(
    ['agent', 'run', '--url', url, '--hostname', 'test1', '--data-dir', join(home, 'agent')],
    enrollment,
  )
  t.teardown(() => agent.child.kill('SIGKILL'))
  await agent.shows('is host 1')
  const shown = await runRsm(['hosts', 'show', 'test1', '--json'], user)
  t.is(JSON.parse(shown.stdout).agent.onDemand, false)
  const ran = await runRsm(['exec', '-t', 'role=test', '--queue', '30', '--', 'echo out; exit 3'], user)
  t.is(ran.stdout, 'test1: out\n')
  t.is(ran.exit, 3)
  t.regex(ran.stderr, /test1: FAILED, exit 3\nrsm: 1 host: FAILED/)
  const goOn = join(home, 'go-on')
  const script = `echo up; until test -e ${goOn}; do sleep 0.05; done`
  const followed = startRsm(['exec', '-w', 'test1', '--', script], user)
  t.teardown(() => followed.child.kill('SIGKILL'))
  await followed.shows('test1: up')
  for (const { child } of [server, agent, followed]) child.kill('SIGUSR1')
  writeFileSync(goOn, '')
  t.is((await followed.done).exit, 0)
  // One piece of output with many lines.
  await runRsm(['exec', '-a', '--', 'seq 1 1000'], user)
  for (const follow of [[], ['-f']]) {
    const end = await runRsm(['logs', 'latest', '--tail', '2', ...follow], user)
    t.is(end.stdout, 'test1: 999\ntest1: 1000\n', end.stderr)
  }
  const unknown = await runRsm(['exec', '-w', 'tset1', 'x'], user)
  t.is(unknown.exit, 5)
  t.regex(unknown.stderr, /did you mean test1/)
  agent.child.kill('SIGTERM')
  t.is((await agent.done).exit, 0)
  server.child.kill('SIGTERM')
  t.is((await server.done).exit, 0)
  for (const { out } of [server, agent, followed]) t.notRegex(out.stderr, /debugger|inspector/i)
})

test('the generated password of the first administrator is printed once, on stderr', async (t) => {
  const home = temporaryDirectory(t)
  const argv = ['server', 'start', '--port', '0', '--data-dir', join(home, 'data'), '--log-level', 'ERROR']
  for (const expected of [1, 0]) {
    const server = startRsm(argv, cleanEnv(home))
    await server.shows('listening on http://127.0.0.1:')
    server.child.kill('SIGINT')
    const { exit, stdout, stderr } = await server.done
    t.is(exit, 0)
    t.is(stderr.match(/password/g)?.length ?? 0, expected)
    t.false(stdout.includes('password'))
  }
})

test('a server beyond loopback without TLS does not start, and says why', async (t) => {
  const home = temporaryDirectory(t)
  const argv = ['server', 'start', '--host', '0.0.0.0', '--port', '0', '--data-dir', join(home, 'data')]
  const ran = await runRsm(argv, cleanEnv(home))
  t.is(ran.exit, 2)
  t.regex(ran.stderr, /in the clear\n.*--insecure-http/)
})

test('an agent without an enrollment token says how to get one; a given token is hidden from the process list', async (t) => {
  const home = temporaryDirectory(t)
  const argv = ['agent', 'run', '--url', 'http://127.0.0.1:1', '--data-dir', join(home, 'agent')]
  const ran = await runRsm(argv, cleanEnv(home))
  t.is(ran.exit, 2)
  t.regex(ran.stderr, /rsm hosts join/)
  for (const [token, said] of [
    ['', /the enrollment token is empty/],
    ['rsm_enr_a b', /the enrollment token contains a space/],
  ] as const) {
    const refused = await runRsm([...argv, '--enroll-token', token], cleanEnv(home))
    t.is(refused.exit, 2)
    t.regex(refused.stderr, said)
  }
  const waiting = startRsm([...argv, '--enroll-token', 'rsm_enr_visible'], cleanEnv(home))
  await waiting.shows('"level"')
  t.false(readFileSync(`/proc/${waiting.child.pid}/cmdline`, 'utf8').includes('rsm_enr_visible'))
  waiting.child.kill('SIGTERM')
  t.is((await waiting.done).exit, 0)
})

test('quickstart --once runs a first command and leaves no file behind', async (t) => {
  const home = temporaryDirectory(t)
  const env = cleanEnv(home, { TMPDIR: home })
  const ran = await runRsm(['quickstart', '--once'], env)
  t.is(ran.exit, 0, ran.stderr)
  t.regex(ran.stdout, /: hello from \S+\n/)
  t.deepEqual(readdirSync(home), [])
})

test('quickstart stays up, remembers its server and stops on Ctrl-C; the next start reuses the server', async (t) => {
  const home = temporaryDirectory(t)
  const env = cleanEnv(home)
  for (const hosts of [1, 1]) {
    const quickstart = startRsm(['quickstart', '--port', '0'], env)
    t.teardown(() => quickstart.child.kill('SIGKILL'))
    await quickstart.shows('It is up')
    const list = await runRsm(['hosts', 'list', '-o', 'names'], env)
    t.is(list.stdout.trim().split('\n').length, hosts, list.stderr)
    quickstart.child.kill('SIGINT')
    t.is((await quickstart.done).exit, 0)
  }
  t.is(statSync(join(home, 'state/rsm/quickstart/admin-password')).mode & 0o777, 0o600)
})

test('an interrupted quickstart --once leaves no file behind', async (t) => {
  const home = temporaryDirectory(t)
  const quickstart = startRsm(['quickstart', '--once'], cleanEnv(home, { TMPDIR: home }))
  await quickstart.shows('server at')
  quickstart.child.kill('SIGINT')
  t.is((await quickstart.done).exit, 130)
  t.deepEqual(readdirSync(home), [])
})
