import test from 'ava'
import type { User } from '../../src/core/protocol/http/users.ts'
import { commandLine, viewerToken } from '../helpers/clients/command-line.ts'
import { startTestServer } from '../helpers/servers/server.ts'

const password = 'a password for alice'

test('users can be added, shown, edited and removed', async (t) => {
  const server = await startTestServer(t)
  const rsm = commandLine(t, server)
  const added = await rsm(['users', 'add', 'alice', '--role', 'viewer', '--password-stdin'], {
    input: password,
  })
  t.is(added.exit, 0, added.stderr)
  const shown = await rsm(['users', 'show', 'ALICE'])
  t.regex(shown.stdout, /^username +alice$/m)
  t.regex(shown.stdout, /^role +VIEWER$/m)

  const renamed = await rsm(['users', 'edit', 'alice', '--email', 'a@example.org', '--username', 'ann'])
  t.is(renamed.stdout, 'changed ann (VIEWER)\n')
  t.is(renamed.stderr, '')
  const raised = await rsm(['users', 'edit', 'ann', '--role', 'operator', '--email', '', '--json'])
  t.like(JSON.parse(raised.stdout) as User, { username: 'ann', role: 'OPERATOR', email: null })
  t.is(raised.stderr, 'rsm: every session and token of ann has ended\n')

  t.is((await rsm(['users', 'edit', 'ann', '--password-stdin'], { input: 'another password\n' })).exit, 0)
  const login = { username: 'ann', password: 'another password' }
  t.is((await server.api('POST', '/api/auth/login', login)).status, 200)
  const disabled = await rsm(['users', 'edit', 'ann', '--disable'])
  t.is(disabled.stdout, 'changed ann (OPERATOR, disabled)\n')
  t.is((await server.api('POST', '/api/auth/login', login)).status, 401)
  t.is((await rsm(['users', 'edit', 'ann', '--enable'])).stdout, 'changed ann (OPERATOR)\n')

  const kept = await rsm(['users', 'remove', 'ann'])
  t.is(kept.exit, 2)
  t.regex(kept.stderr, /--yes/)
  t.is((await rsm(['users', 'remove', 'ann', '--yes'])).stdout, 'removed ann\n')
  const gone = await rsm(['users', 'show', 'admni'])
  t.is(gone.exit, 5)
  t.is(gone.stderr, 'rsm: no such user: admni (did you mean admin?)\n     rsm users list\n')
})

test('users edit without a change, or with options that exclude each other, is a usage error', async (t) => {
  const rsm = commandLine(t, await startTestServer(t))
  const nothing = await rsm(['users', 'edit', 'admin'])
  t.is(nothing.exit, 2)
  t.regex(nothing.stderr, /^rsm: nothing to change\n/)
  t.is((await rsm(['users', 'edit', 'admin', '--enable', '--disable'])).exit, 2)
})

test('demoting or removing the last enabled ADMIN is refused with exit code 6 and the reason', async (t) => {
  const rsm = commandLine(t, await startTestServer(t))
  for (const argv of [
    ['users', 'edit', 'admin', '--role', 'VIEWER'],
    ['users', 'remove', 'admin', '-y'],
  ]) {
    const ran = await rsm(argv)
    t.is(ran.exit, 6)
    t.regex(ran.stderr, /last enabled ADMIN/)
  }
})

test('commands that a VIEWER may not run exit with 3', async (t) => {
  const server = await startTestServer(t)
  await server.enroll('web1')
  const script = { name: 'deploy', type: 'BASH', content: 'true' }
  await server.data('POST', '/api/scripts', script)
  const rsm = commandLine(t, server, await viewerToken(server))
  for (const argv of [
    ['users', 'show', 'admin'],
    ['enrollments', 'list'],
    ['hosts', 'edit', 'web1', '-t', 'a=b'],
    ['hosts', 'revoke', 'web1', '--yes'],
    ['scripts', 'edit', 'deploy', '--timeout', '5'],
    ['scripts', 'remove', 'deploy', '--yes'],
    ['tokens', 'add', 'ci', '--role', 'ADMIN'],
  ]) {
    const ran = await rsm(argv)
    t.is(ran.exit, 3, `${argv.join(' ')}: ${ran.stderr}`)
    t.is(ran.stdout, '')
  }
})

test('users list and clusters list --search show only matching rows', async (t) => {
  const server = await startTestServer(t)
  await viewerToken(server)
  await server.data('POST', '/api/clusters', { name: 'web', hostIds: [] })
  await server.data('POST', '/api/clusters', { name: 'db', hostIds: [] })
  const rsm = commandLine(t, server)
  const users = JSON.parse((await rsm(['users', 'list', '--search', 'VIEW', '--json'])).stdout)
  t.is(users.totalElements, 1)
  const clusters = await rsm(['clusters', 'list', '--search', 'we'])
  t.regex(clusters.stdout, /\bweb\b/)
  t.notRegex(clusters.stdout, /\bdb\b/)
  t.is((await rsm(['clusters', 'list', '--search', 'x'])).stderr, 'rsm: no clusters match\n')
})

test('A16 users add and edit grant and revoke rights; show, list and whoami print them', async (t) => {
  const server = await startTestServer(t)
  const rsm = commandLine(t, server)
  await rsm(['users', 'add', 'oskar', '--role', 'OPERATOR', '--right', 'hosts:remove', '--password-stdin'], {
    input: password,
  })
  t.regex((await rsm(['users', 'show', 'oskar'])).stdout, /^role +OPERATOR, hosts:remove$/m)
  t.regex((await rsm(['users', 'list'])).stdout, / oskar +OPERATOR, hosts:remove /)
  const { token } = await server.data('POST', '/api/auth/login', { username: 'oskar', password })
  const own = commandLine(t, server, token)
  t.regex((await own(['whoami'])).stdout, /^oskar \(OPERATOR, hosts:remove\) at /)
  await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '10.0.0.1' })
  t.is((await own(['hosts', 'remove', 'web1', '--yes'])).exit, 0)
  const taken = await rsm(['users', 'edit', 'oskar', '--right', 'none'])
  t.deepEqual([taken.stdout, taken.stderr], ['changed oskar (OPERATOR)\n', ''])
  await server.data('POST', '/api/hosts', { hostname: 'web2', ip: '10.0.0.1' })
  const refused = await own(['hosts', 'remove', 'web2', '--yes'])
  t.is(refused.exit, 3)
  t.regex(refused.stderr, /^rsm: you are oskar \(OPERATOR\); this requires ADMIN or the right hosts:remove\n/)
  t.is((await rsm(['users', 'edit', 'oskar', '--right', 'none', '--right', 'hosts:remove'])).exit, 2)
})

test('A09 only tokens of tokens add --admin may join hosts', async (t) => {
  const server = await startTestServer(t)
  const rsm = commandLine(t, server)
  const made = async (...more: string[]) =>
    commandLine(t, server, (await rsm(['tokens', 'add', 'ci', ...more])).stdout.trim())
  const plain = await made()
  const refused = await plain(['hosts', 'join'])
  t.is(refused.exit, 3)
  t.regex(
    refused.stderr,
    /^rsm: you are admin \(ADMIN, by a token as ADMIN\); .*\(rsm tokens add --admin\)\n/,
  )
  const administers = await made('--admin')
  t.is((await administers(['hosts', 'join'])).exit, 0)
  t.regex((await administers(['whoami'])).stdout, /by token ci as ADMIN with --admin at/)
  t.regex((await rsm(['tokens', 'list'])).stdout, / ci +ADMIN with --admin /)
})
