import { chmodSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { pageOf, startFakeServer } from '../fixtures/fake-server.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import { runLines } from '../helpers/clients/command-line.ts'

test('login tries a token before storing it beside other contexts; logout forgets it without revoking it', async (t) => {
  const user = { id: 1, username: 'ci', role: 'OPERATOR' }
  const server = await startFakeServer(t, {
    'GET /api/auth/me': ({ headers }) => (headers.authorization === 'Bearer rsm_pat_good' ? user : undefined),
    'POST /api/auth/logout': () => ({}),
  })
  const home = temporaryDirectory(t)
  const file = (name: string, content: string) => {
    writeFileSync(join(home, name), content, { mode: 0o600 })
    return join(home, name)
  }
  const good = file('good', 'rsm_pat_good\n')
  const XDG_CONFIG_HOME = join(home, 'config')
  const env = { RSM_URL: '', RSM_TOKEN: '', XDG_CONFIG_HOME }
  mkdirSync(join(XDG_CONFIG_HOME, 'rsm'), { recursive: true })
  const linked = join(XDG_CONFIG_HOME, 'rsm', 'tokens.json')
  symlinkSync(file('settings', '{}'), linked)
  const { url } = server
  const stranger = url.replace('127.0.0.1', 'localhost')
  const ran = await runLines(
    t,
    { url, token: '' },
    [
      ['login', url, '--context', 'production', '--token-file', good],
      ['login', stranger, '--context', 'staging', '--token-file', good],
      ['login', stranger, '--context', 'production', '--token-file', good],
      ['login', url, '--token-stdin', '--password-stdin'],
      ['context', 'list'],
      ['whoami'],
      ['whoami', '--context', 'production'],
      ['logout', '--context', 'production'],
      ['whoami', '--context', 'production'],
      ['whoami'],
      ['login', url, '--token-file', join(home, 'nosuch')],
    ].map((argv) => ({ argv, env })),
  )
  const out = ran.map(({ exit, stdout, stderr }) => `${exit} ${stdout}${stderr}`)
  t.is(out[0], `0 logged in to ${url} as ci (OPERATOR)\n`)
  t.is(
    out[1],
    `0 logged in to ${stranger} as ci (OPERATOR)\nrsm: now using staging; to go back: rsm context use production\n`,
  )
  t.regex(
    out[2] ?? '',
    /^6 rsm: context production is already http:\/\/127.*\n.*rsm context remove production/,
  )
  t.regex(out[3] ?? '', /^2 rsm: .*exclude each other/)
  t.regex(out[4] ?? '', /production +http:\/\/127\S+ +ci\n\* +staging +http:\/\/localhost\S+ +ci\n/)
  t.is(out[5], `0 ci (OPERATOR) at ${stranger}\n`)
  t.is(out[6], `0 ci (OPERATOR) at ${url}\n`)
  t.is(out[7], `0 logged out of ${url}\nrsm: the token itself is still valid\n`)
  t.regex(out[8] ?? '', /^3 rsm: not logged in to http:\/\/127/)
  t.is(out[9], `0 ci (OPERATOR) at ${stranger}\n`)
  t.regex(out[10] ?? '', /^2 rsm: cannot read .*nosuch \(--token-file\): there is no such file/)
  t.false(server.seen.some(({ path }) => path === '/api/auth/logout'))
  t.true(lstatSync(linked).isSymbolicLink())
  t.false(readFileSync(join(home, 'settings'), 'utf8').includes(url))
})

test('a login as another user creates its own context, and is refused for a context of someone else', async (t) => {
  const user = (username: string) => ({ id: 1, username, role: 'OPERATOR' })
  const server = await startFakeServer(t, {
    'GET /api/auth/me': ({ headers }) => user((headers.authorization ?? '').replace('Bearer rsm_pat_', '')),
    'POST /api/auth/logout': () => ({}),
  })
  const { url } = server
  const { host } = new URL(url)
  const home = temporaryDirectory(t)
  const env = (more = {}) => cleanEnv(home, { XDG_CONFIG_HOME: home, ...more })
  const said = async (argv: string[], { input = '', more = {} } = {}) => {
    const { exit, stdout, stderr } = await runRsm(argv, env(more), input)
    return `${exit} ${stdout}${stderr}`
  }
  const login = (username: string, ...more: string[]) =>
    said(['login', url, '--token-stdin', ...more], { input: `rsm_pat_${username}` })
  await login('alice', '--context', 'alice')
  t.is(
    await login('admin'),
    `0 logged in to ${url} as admin (OPERATOR)\nrsm: now using ${host}; to go back: rsm context use alice\n`,
  )
  const refusal = /^6 rsm: context alice is already logged in as alice\n +choose another with --context NAME/
  t.regex(await login('admin', '--context', 'alice'), refusal)
  const given = ['--context', 'alice', '-u', 'admin', '--password-stdin']
  t.regex(await said(['login', url, ...given], { input: 'secret' }), refusal)
  t.true(server.seen.every(({ path }) => path !== '/api/auth/login'))
  t.is(await said(['whoami', '--context', 'alice']), `0 alice (OPERATOR) at ${url}\n`)
  t.is(await said(['whoami']), `0 admin (OPERATOR) at ${url}\n`)
  await said(['logout'], { more: { RSM_TOKEN: 'rsm_ses_alice' } })
  t.is(
    await said(['whoami']),
    `0 admin (OPERATOR) at ${url}\n`,
    'logout of a token from a variable keeps the stored token',
  )
})

test('a login that cannot be stored is refused before a token or password is sent', async (t) => {
  const server = await startFakeServer(t, {})
  const home = temporaryDirectory(t)
  writeFileSync(join(home, 'file'), '')
  const env = { RSM_URL: '', RSM_TOKEN: '', XDG_CONFIG_HOME: join(home, 'file') }
  const [ran] = await runLines(t, { url: server.url, token: '' }, [
    { argv: ['login', server.url, '--username', 'ann', '--password-stdin'], env },
  ])
  t.is(ran?.exit, 6)
  t.regex(
    ran?.stderr ?? '',
    /^rsm: cannot write in .*file\/rsm: a part of this path is a file\n.*XDG_CONFIG_HOME/,
  )
  t.deepEqual(server.seen, [])
})

test('A16 commands and login warn about a world-readable token file, but not with -q or in CI', async (t) => {
  const user = { id: 1, username: 'ci', role: 'OPERATOR' }
  const server = await startFakeServer(t, { 'GET /api/auth/me': () => user })
  const path = join(temporaryDirectory(t), 'token')
  writeFileSync(path, 'secret\n')
  const whoami = ['whoami', '--token-file', path]
  const said = async (mode: number, argv: string[], env = {}) => {
    chmodSync(path, mode)
    const [ran] = await runLines(t, { url: server.url, token: '' }, [{ argv, env }])
    t.is(ran?.exit, 0, ran?.stderr)
    return ran?.stderr.replace(path, 'FILE')
  }
  const warning = 'rsm: warning: every user of this machine can read the token: chmod 600 FILE\n'
  t.is(await said(0o644, whoami), warning)
  t.is(await said(0o644, ['whoami'], { RSM_TOKEN: '', RSM_TOKEN_FILE: path }), warning)
  t.is(await said(0o644, ['login', server.url, '--token-file', path]), warning)
  t.is(await said(0o644, [...whoami, '-q']), '')
  t.is(await said(0o644, whoami, { CI: 'true' }), '')
  t.is(await said(0o640, whoami), '')
})

test('A16 hosts join warns that a loopback address works locally only, and that its line needs rsm on the host', async (t) => {
  const made = { id: 3, token: 'rsm_enr_x', expiresAt: '2026-11-22T00:00:00.000Z' }
  const server = await startFakeServer(t, { 'POST /api/enrollment-tokens': () => made })
  const [ran] = await runLines(t, { url: server.url, token: 'secret' }, [{ argv: ['hosts', 'join'] }])
  t.regex(ran?.stdout ?? '', /^ RSM_AGENT_ENROLL_TOKEN=rsm_enr_x rsm agent run --url http:\/\/127/)
  const { host, port } = new URL(server.url)
  const advice =
    `rsm: this line works on this machine only (${host}); for other hosts: rsm server start --host 0.0.0.0 --tls-self-signed --public-url https://NAME:${port}\n` +
    'rsm: this line needs rsm on the host; for a host without it, first add an executable to the server: rsm server releases add FILE\n'
  t.is(ran?.stderr.slice(0, advice.length), advice)
  // Also without a terminal.
  t.regex(ran?.stderr ?? '', /\nrsm: run this line on the host before 2026-11-2\d /)
})

test('A16 login refuses the URL of a page before it sends a password, but accepts a server below a path', async (t) => {
  const user = { id: 1, username: 'ci', role: 'OPERATOR' }
  const server = await startFakeServer(t, {
    'GET /api/health': () => ({ status: 'UP' }),
    'GET /rsm/api/health': () => ({ status: 'UP' }),
    'GET /rsm/api/auth/me': () => user,
  })
  const login = async (path: string) => {
    const argv = ['login', server.url + path, '--token-stdin']
    const home = temporaryDirectory(t)
    return runRsm(argv, cleanEnv(home, {}), 'secret')
  }
  const page = await login('/login')
  t.is(page.exit, 2)
  t.is(
    page.stderr,
    `rsm: there is no server at ${server.url}/login, but one at ${server.url}\n     rsm login ${server.url}\n`,
  )
  t.false(server.seen.some(({ headers }) => headers.authorization !== undefined))
  t.is((await login('/rsm')).exit, 0)
})

test('A16 the error for https to a port without TLS suggests http', async (t) => {
  const server = await startFakeServer(t, {})
  const argv = ['whoami', '--url', server.url.replace('http:', 'https:')]
  const ran = await runRsm(argv, cleanEnv(temporaryDirectory(t), { RSM_TOKEN: 'x' }))
  t.is(ran.exit, 4)
  t.regex(ran.stderr, /it does not speak TLS there\n +if unencrypted traffic is acceptable, use http:\/\//)
})

test('A16 an enrollment token is listed with the name of its cluster', async (t) => {
  const token = {
    id: 3,
    name: null,
    uses: 0,
    maxUses: 1,
    hostId: null,
    clusterId: 7,
    tags: {},
    createdBy: 'admin',
    expiresAt: '2026-11-22T00:00:00.000Z',
  }
  const server = await startFakeServer(t, {
    'GET /api/enrollment-tokens': () => pageOf([token]),
    'GET /api/clusters': () => pageOf([{ id: 7, name: 'production' }]),
  })
  const [ran] = await runLines(t, { url: server.url, token: 'x' }, [{ argv: ['enrollments', 'list'] }])
  t.regex(ran?.stdout ?? '', /CLUSTER[^]* production /)
})
