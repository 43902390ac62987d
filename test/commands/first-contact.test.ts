import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { Contexts } from '../../src/cli/contexts/contexts.ts'
import { envelope, hostNamed, pageOf, startFakeServer } from '../fixtures/fake-server.ts'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../fixtures/rsm.ts'

const cases: [string[], number, RegExp][] = [
  [['hosts', 'list'], 3, /no server is configured yet\n.*rsm login URL.*rsm quickstart/],
  [
    ['agent', 'run', '--url', 'http://127.0.0.1:1'],
    2,
    /not registered, and there is no enrollment token\n.*rsm hosts join/,
  ],
  [['agent', 'run', '--url', 'http://127.0.0.1:1', '--run-as', 'no-such-user'], 2, /no-such-user/],
  [
    ['hosts', 'list', '--url', 'http://127.0.0.1:1'],
    3,
    /not logged in.*\n.*rsm login http:\/\/127.0.0.1:1, or set RSM_TOKEN/,
  ],
  [['hsots'], 2, /unknown command: hsots \(did you mean rsm hosts\?\)/],
  [['exec', 'uptime'], 2, /no target.*\n.*--all/],
  [['exec', '-w', 'web1'], 2, /nothing to run/],
  [['exec', '-w', 'web1', '--bacth-size', '1', 'ls'], 2, /did you mean --batch-size/],
  [
    ['exec', '-w', 'web1', '--script', './missing.sh'],
    2,
    /cannot read \.\/missing\.sh: there is no such file/,
  ],
  [
    ['agent', 'run', '--url', 'http://127.0.0.1:1', '--enroll-token-file', 'nofile'],
    2,
    /^rsm: cannot read nofile \(--enroll-token-file\): there is no such file\n$/,
  ],
  [
    ['agent', 'run', '--url', 'http://127.0.0.1:1', '--ca-file', 'nofile'],
    2,
    /^rsm: cannot read nofile \(--ca-file\): there is no such file\n$/,
  ],
  [
    ['agent', 'install', '--url', 'http://127.0.0.1:1', '--dry-run', '--ca-file', 'package.json'],
    2,
    /^rsm: cannot read the certificates in package\.json: it holds no certificate in PEM\n$/,
  ],
  [
    ['hosts', 'list', '--url', 'http://127.0.0.1:1', '--token-file', 'nofile'],
    2,
    /^rsm: cannot read nofile \(--token-file\): there is no such file\n$/,
  ],
  [
    ['hosts', 'add', 'web1', '--ip', '192.0.2.1', '--private-key', 'nofile'],
    2,
    /^rsm: cannot read nofile \(--private-key\): there is no such file\n$/,
  ],
  [['users', 'add', 'ann', '--role', 'boss'], 2, /--role=boss is not one of: VIEWER, OPERATOR, ADMIN/],
  [['exec', '-w', '-', '-'], 2, /no host names|both/],
  [['exec', '-w', 'a', '--secret-param', 'TOKEN=x', 'ls'], 2, /every user can see arguments/],
  [['hosts', 'show'], 2, /missing HOST\n.*rsm hosts list/],
  [['logs', '-f'], 2, /missing TASK\n.*rsm tasks list/],
  [['hosts', 'list', '--limit', '0'], 2, /--limit|integer/],
  [['login', 'rsm.example'], 2, /not a URL/],
  [
    ['login', 'http://127.0.0.1:1', '--username', 'a'],
    2,
    /no terminal to ask "Password"\n.*--password-stdin/,
  ],
  [['login', 'http://127.0.0.1:1', '--password-stdin'], 2, /no username\b.*\n.*--username admin/],
]
for (const [argv, exit, message] of cases)
  test(`rsm ${argv.join(' ')} exits with ${exit}, an error line and advice`, async (t) => {
    const home = temporaryDirectory(t)
    const RSM_AGENT_DATA_DIR = join(home, 'agent')
    const ran = await runRsm(argv, cleanEnv(home, { RSM_AGENT_DATA_DIR }))
    t.is(ran.exit, exit, ran.stderr)
    t.false(existsSync(RSM_AGENT_DATA_DIR))
    t.regex(ran.stderr, message)
    t.regex(ran.stderr, /^rsm: /)
    t.true(ran.stderr.split('\n').length <= 3, ran.stderr)
    t.is(ran.stdout, '')
  })

test('with --json an error is one line of JSON on stderr, and stdout stays empty', async (t) => {
  const ran = await runRsm(['hosts', 'list', '--json'], cleanEnv(temporaryDirectory(t)))
  t.is(ran.stdout, '')
  const { error } = JSON.parse(ran.stderr) as { error: Record<string, unknown> }
  t.deepEqual(Object.keys(error), ['exit', 'code', 'message', 'errors', 'hint'])
  t.like(error, { exit: 3, code: 'unauthenticated' })
})

test('a server that is down gives exit code 4', async (t) => {
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: 'http://127.0.0.1:1', RSM_TOKEN: 'x' })
  const ran = await runRsm(['hosts', 'list'], env)
  t.is(ran.exit, 4)
  t.regex(ran.stderr, /cannot reach http:\/\/127\.0\.0\.1:1: connection refused/)
})

test('an unknown host gives exit code 5 and a suggestion', async (t) => {
  const server = await startFakeServer(t, {
    'GET /api/hosts': (_seen, response) =>
      envelope(response, 400, {
        errors: [{ field: 'selector', message: 'no such host: wbe1 (did you mean web1?)' }],
      }),
  })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'x' })
  const ran = await runRsm(['hosts', 'show', 'wbe1'], env)
  t.is(ran.exit, 5)
  t.is(ran.stderr, 'rsm: no such host: wbe1 (did you mean web1?)\n')
})

for (const [first, hint] of [
  ['web1', 'rsm exec -w web1 COMMAND'],
  ['web[1-2]', "rsm exec -w 'web[1-2]' COMMAND"],
  ['ls', "-w 'web[1-3]'"],
] as const)
  test(`rsm exec ${first} uptime, without -w, runs nothing and says where to put hosts`, async (t) => {
    const server = await startFakeServer(t, {
      'GET /api/hosts': ({ query }, response) =>
        query.get('selector') === 'ls' ? envelope(response, 400, {}) : pageOf([hostNamed(1, 'web1')]),
    })
    const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'x' })
    const ran = await runRsm(['exec', first, 'uptime'], env)
    t.is(ran.exit, 2)
    t.true(ran.stderr.startsWith('rsm: no target hosts\n'), ran.stderr)
    t.true(ran.stderr.includes(hint), ran.stderr)
    t.deepEqual(
      server.seen.map(({ method }) => method),
      ['GET'],
    )
  })

test('more unknown names than the server lists give exit code 5 and one error line', async (t) => {
  const messages = ['no such host: web4', 'no such host: web5', 'and 2 more that do not exist']
  const server = await startFakeServer(t, {
    'GET /api/hosts': (_seen, response) =>
      envelope(response, 400, { errors: messages.map((message) => ({ field: 'selector', message })) }),
  })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'x' })
  const ran = await runRsm(['hosts', 'list', '-w', 'web[4-7]'], env)
  t.is(ran.exit, 5)
  t.is(ran.stderr, 'rsm: no such host: web4, web5; and 2 more that do not exist\n')
})

const taken: [string[], string, string, RegExp][] = [
  [['clusters', 'add', 'web'], '/api/clusters', 'cluster web', /rsm clusters edit web/],
  [['scripts', 'add', 'web', '-'], '/api/scripts', 'script web', /rsm scripts edit web/],
  [['hosts', 'add', 'web', '--ip', '192.0.2.1'], '/api/hosts', 'host web', /rsm hosts show web/],
  [
    ['users', 'add', 'web', '--role', 'VIEWER', '--password-stdin'],
    '/api/users',
    'user web',
    /rsm users list/,
  ],
]
for (const [argv, path, what, hint] of taken)
  test(`rsm ${argv.join(' ')}, with a taken name, exits with 6 and suggests the existing object`, async (t) => {
    const server = await startFakeServer(t, {
      [`POST ${path}`]: (_seen, response) => envelope(response, 409, {}),
    })
    const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'x' })
    const ran = await runRsm(argv, env, 'echo hello')
    t.is(ran.exit, 6, ran.stderr)
    t.true(ran.stderr.startsWith(`rsm: a ${what} already exists\n`), ran.stderr)
    t.regex(ran.stderr, hint)
  })

test('hosts list of an empty fleet says how to join a host', async (t) => {
  const server = await startFakeServer(t, { 'GET /api/hosts': () => pageOf([]) })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'x' })
  const ran = await runRsm(['hosts', 'list'], env)
  t.is(ran.exit, 0)
  t.regex(ran.stderr, /rsm hosts join/)
})

test('login reads the password from stdin, and stores the token for its user and its URL only', async (t) => {
  const server = await startFakeServer(t, {
    'POST /api/auth/login': ({ body }) => {
      t.deepEqual(body, { username: 'ann', password: 's3cret pass' })
      return {
        token: 'rsm_ses_1',
        expiresAt: '2026-11-22T00:00:00.000Z',
        user: { id: 1, username: 'ann', role: 'ADMIN' },
      }
    },
    'GET /api/auth/me': ({ headers }) => {
      t.is(headers.authorization, 'Bearer rsm_ses_1')
      return { id: 1, username: 'ann', role: 'ADMIN' }
    },
    'POST /api/auth/logout': () => ({}),
  })
  const home = temporaryDirectory(t)
  const env = cleanEnv(home)
  const login = await runRsm(
    ['login', server.url, '--username', 'ann', '--password-stdin'],
    env,
    's3cret pass\n',
  )
  t.is(login.exit, 0, login.stderr)
  t.false((login.stdout + login.stderr).includes('rsm_ses_1'))
  t.is(statSync(join(home, 'config/rsm/tokens.json')).mode & 0o777, 0o600)
  const who = await runRsm(['whoami'], env)
  t.is(who.stdout, `ann (ADMIN) at ${server.url}\n`)
  t.is((await runRsm(['whoami', '--url', 'http://127.0.0.1:1'], env)).exit, 3)
  t.is((await runRsm(['logout'], env)).exit, 0)
  t.is((await runRsm(['whoami'], env)).exit, 3)
  const gone = await runRsm(['context', 'remove', new URL(server.url).host, '--yes'], env)
  t.is(gone.exit, 0, gone.stderr)
})

test('--json prints the data object and nothing else; -o names prints names', async (t) => {
  const server = await startFakeServer(t, {
    'GET /api/hosts': () => pageOf([hostNamed(1, 'web1'), hostNamed(2, 'web2')]),
  })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'x' })
  const json = await runRsm(['hosts', 'list', '--json'], env)
  t.is((JSON.parse(json.stdout) as { content: unknown[] }).content.length, 2)
  t.is((await runRsm(['hosts', 'list', '-o', 'names'], env)).stdout, 'web1\nweb2\n')
  t.regex((await runRsm(['hosts', 'list'], env)).stdout, /^ID +HOSTNAME +STATUS/)
})

test('a deletion without a terminal needs --yes', async (t) => {
  const server = await startFakeServer(t, {
    'GET /api/hosts': () => pageOf([hostNamed(1, 'web1')]),
    'DELETE /api/hosts/1': () => ({ id: 1 }),
  })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'x' })
  const refused = await runRsm(['hosts', 'remove', 'web1'], env, 'y\n')
  t.is(refused.exit, 2)
  t.regex(refused.stderr, /--yes/)
  t.is((await runRsm(['hosts', 'remove', 'web1', '--yes'], env)).exit, 0)
})

test('rsm --version prints name, version, platform and Node version', async (t) => {
  const ran = await runRsm(['--version'], cleanEnv(temporaryDirectory(t)))
  t.regex(ran.stdout, /^rsm\/\d+\.\d+\.\d+ linux-\w+ node-v\d+\.\d+\.\d+\n$/)
})

test('quickstart keeps the context of another server, and names the current context when it ends', async (t) => {
  const home = temporaryDirectory(t)
  const contexts = new Contexts({ XDG_CONFIG_HOME: home })
  contexts.save('quickstart', { url: 'https://rsm.example', username: 'admin' }, 'theirs')
  const argv = ['quickstart', '--port', '0', '--data-dir', join(home, 'try')]
  const started = startRsm(argv, cleanEnv(home, { XDG_CONFIG_HOME: home }))
  t.teardown(() => started.child.kill('SIGKILL'))
  await started.shows('Ctrl-C stops it')
  t.regex(started.out.stdout, /hosts list --context quickstart-2\n/)
  started.child.kill('SIGINT')
  t.regex((await started.done).stderr, /the current context is quickstart \(https:\/\/rsm\.example\)\n$/)
  t.is(contexts.choose({}, {}).token, 'theirs')
  t.is(contexts.nameForQuickstart(join(home, 'try')), 'quickstart-2')
})

test('quickstart --once uses no other port than the given one', async (t) => {
  const { port } = new URL((await startFakeServer(t, {})).url)
  const ran = await runRsm(['quickstart', '--once', '--port', port], cleanEnv(temporaryDirectory(t)))
  t.is(ran.exit, 6, ran.stderr)
  t.regex(ran.stderr, new RegExp(`port ${port} of 127\\.0\\.0\\.1 is in use`))
})
