import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import test, { type ExecutionContext } from 'ava'
import { cleanEnv, type Line, temporaryDirectory } from '../fixtures/rsm.ts'
import { runLines } from '../helpers/clients/command-line.ts'
import { startTestServer, type TestServer } from '../helpers/servers/server.ts'

/** `[typed line, exit code, stderr, variables]`; spaces separate words, and `''` is an empty word. */
type Case = readonly [string, number, RegExp, Record<string, string>?]

const targets: Case[] = [
  ['exec', 2, /no target hosts/],
  ['exec -x web1 ls', 2, /no target/],
  ["exec -w '' ls", 2, /-w is empty/],
  ["exec -g '' ls", 2, /-g is empty/],
  ["exec -w web1 -x '' ls", 2, /-x is empty/],
  ['exec -w , ls', 2, /^rsm: a name or group is missing next to an operator/],
  ['exec -w web[1 ls', 2, /a bracket is not closed/],
  ['exec -w web[1-9999999] ls', 2, /more than 100,000 names/],
  [`exec -w ${'x'.repeat(70_000)} ls`, 2, /a host name has at most 253 characters/],
  [`exec -g ${'x'.repeat(129)} ls`, 2, /^rsm: --cluster must have at most 128 characters\n/],
  ['exec -w nosuch ls', 5, /no such host: nosuch/],
  ['exec -w web1 -x web1 ls', 5, /^rsm: nothing to run on: excluding web1 leaves none of 1 host\n/],
  ['exec -w zz* ls', 5, /^rsm: nothing to run on: nothing matches zz\*\n/],
  ['exec --plan -w zz* ls', 5, /^rsm: nothing to run on: nothing matches zz\*\n/],
  ['exec -a -w web1 ls', 2, /--all already means every host/],
  ['exec -t role ls', 2, /--tag takes KEY=VALUE, not role/],
  ["hosts show ''", 2, /must not be blank/],
  ['hosts wait web[1-2', 2, /a bracket is not closed/],
  ['hosts wait zz*', 5, /^rsm: the target matches no host: nothing matches zz\*\n/],
  ['hosts wait --new @web', 2, /no groups/],
  ['terminal deploy@web1', 2, /the user does not go before the host.*\n.*rsm terminal web1 --run-as deploy/],
]

const options: Case[] = [
  ['exec -w', 2, /--hosts needs a value/],
  ['exec -w web1', 2, /nothing to run/],
  ['exec -w web1 --', 2, /nothing to run/],
  ['exec -w web1 -u 5 -u 6 ls', 2, /--timeout is given twice/],
  ['exec -w web1 -p =x ls', 2, /-p takes KEY=VALUE, not =x/],
  ['exec -w web1 -p A ls', 2, /-p takes KEY=VALUE, not A/],
  ['exec -w web1 -p PATH=x ls', 2, /^rsm: -p PATH: /],
  ['exec -w web1 -u 1e5 ls', 2, /not a duration: 1e5/],
  ['exec -w web1 --deadline 25d ls', 2, /--deadline takes at most 24d, not 25d/],
  ['exec -w web1 -f 0 ls', 2, /--concurrency takes a number from 1, not 0/],
  ['exec -w web1 --run-as Web/Admin ls', 2, /--run-as must be the name of a user, like "deploy"/],
  [
    "clusters add 'a|b' -w web1",
    2,
    /name must be made of letters, digits, spaces, dots, dashes and underscores/,
  ],
  ['exec -w web1 --workdir x ls', 2, /--workdir must be an absolute path/],
  ["exec -w web1 --idempotency-key '' ls", 2, /--idempotency-key takes/],
  ['exec -w web1 --idempotency-key ü ls', 2, /--idempotency-key takes/],
  ['exec -w web1 --limit memory=0M ls', 2, /--limit does not take memory=0M/],
  ['exec -w web1 --script a b', 2, /either --script or a command/],
  ['logs x --tail 5 --after 3', 2, /^rsm: --after and --tail exclude each other$/m],
  ['server restore x --keys-only', 2, /^rsm: --keys-only needs --passphrase-file$/m],
  ['clusters add a -w web1 --selector web2', 2, /^rsm: --selector and --hosts exclude each other$/m],
  [
    'agent run --enroll-token x --enroll-token-file /x',
    2,
    /^rsm: --enroll-token and --enroll-token-file exclude each other$/m,
  ],
  ['hosts add n1 --private-key /x', 2, /^rsm: --ip is missing$/m],
  ['logs x --tail -1', 2, /--tail takes a whole number from 0, not -1/],
  ['logs x --after abc', 2, /--after takes a whole number, not abc/],
  ['server start --port 65536', 2, /--port takes a whole number up to 65535, not 65536/],
  ['hosts list -o foo', 2, /--output=foo is not one of/],
  ['hosts list --limt 2', 2, /unknown option --limt \(did you mean --limit\?\)/],
  ['hosts list -- x', 5, /no such host: x/],
  ['hosts wait', 2, /missing SELECTOR/],
  ['hosts list -t role', 2, /-t takes KEY=VALUE, not role\n +for example: -t role=web\n/],
  ['hosts show', 2, /missing HOST/],
  ['hosts shw web1', 2, /did you mean rsm hosts show/],
  ['api GET hosts', 2, /a path begins with a slash/],
  ['api GET', 2, /missing PATH/],
  ['api /api/hosts -d {}', 2, /a body requires a method/],
  ['api GET /api/%zz', 2, /not a path/],
  ['api POST /api/hosts -d {', 2, /not valid JSON/],
  ['recordings list --user nosuch', 5, /no such user: nosuch/],
  ['tasks list --by admn', 5, /no such user: admn \(did you mean admin\?\)/],
  ['logs ../../x', 5, /^rsm: no such task: /],
]

const copies: Case[] = [
  ['cp', 2, /missing PATH/],
  ['cp package.json', 2, /^rsm: missing destination\n.*rsm cp FILE 'SELECTOR:\/PATH'/],
  ['cp web1:/etc/hosts', 2, /^rsm: missing source or destination\n/],
  ["cp '' web1:/x", 2, /^rsm: an argument is empty\n/],
  ['cp package.json dist', 2, /^rsm: no path on hosts: dist is a local path\n/],
  ['cp package.json ./web1:/x', 2, /^rsm: no path on hosts: \.\/web1:\/x is a local path\n/],
  ['cp package.json web1:x', 2, /^rsm: a path on hosts begins with a slash: web1:x\n.*web1:\/x.*\.\/web1:x/],
  ['cp web1:/a web1:/b', 2, /cannot copy from hosts to hosts/],
  ['cp web1:/a web1:/b logs', 2, /one path is copied from hosts at a time/],
  ['cp package.json :/x', 2, /no target/],
  ['cp package.json web1:/srv/../etc/x', 2, /^rsm: path on hosts must not contain "\.\."$/m],
  ['cp package.json web1:/srv/.', 2, /^rsm: path on hosts names a directory/],
  ['cp package.json web1:/srv/%x', 2, /^rsm: path on hosts: has a % before a letter other than h/],
  [`cp package.json web1:/${'x'.repeat(5000)}`, 2, /^rsm: path on hosts must have at most 4095 bytes/],
  ['cp web1:/srv/../etc/x logs', 2, /^rsm: path on hosts must not contain "\.\."$/m],
  ['cp web1:/etc/ logs', 2, /^rsm: \/etc\/ is a directory\n.*-r/],
  [
    'cp web1:/etc/hosts package.json/x',
    2,
    /can't write into package\.json: a part of this path is a file|not a directory/,
  ],
  ['cp nosuch web1:/x', 2, /^rsm: cannot read nosuch: there is no such file/],
  ['cp src web1:/x', 2, /^rsm: src is a directory\n.*-r/],
  ['cp /dev/null web1:/x', 2, /^rsm: cannot read \/dev\/null: it is not a regular file/],
  ['cp - web1:/srv/', 2, /stdin has no name/],
  ['cp - package.json web1:/srv', 2, /stdin cannot be copied together/],
  ['cp -r src web1:/x --diff', 2, /--diff takes one file only/],
  ['cp package.json web1:/x --mode 999', 2, /--mode takes an octal number of 3 or 4 digits, not 999/],
  ['cp package.json web1:/x --owner a:b:c', 2, /--owner takes USER, USER:GROUP or :GROUP/],
  ['cp package.json web1:/x --limit-rate 1K', 2, /--limit-rate takes bytes per second from 16K to 1024G/],
  ['cp package.json web1:/x --diff --secret', 2, /--diff would show what is secret/],
  ['cp package.json web1:/x -L', 2, /--follow is for copies from hosts/],
  ['cp web1:/x logs --mode 0600', 2, /--mode is for copies to hosts/],
  ['cp web1:/x logs --detach', 2, /--detach does not wait, so nothing would be written to logs/],
  ['cp package.json nosuch:/x', 5, /no such host: nosuch/],
  ['exec -w web1 --stdin nosuch cat', 2, /^rsm: cannot read nosuch: there is no such file/],
  ['exec -w web1 --stdin - --script -', 2, /stdin can't be both/],
]

const surroundings: Case[] = [
  ['hosts list', 2, /begins with http:.*: web1:18080\n.*https:\/\/web1:18080/, { RSM_URL: 'web1:18080' }],
  ['hosts list', 2, /begins with http/, { RSM_URL: 'ftp://x' }],
  ['hosts list', 4, /connection refused/, { RSM_URL: 'http://127.0.0.1:1' }],
  ['hosts list', 2, /the token is malformed/, { RSM_TOKEN: 'a\nb' }],
  ['hosts list', 3, /unknown, has expired or was revoked\n.*rsm login/, { RSM_TOKEN: 'x' }],
  ['hosts list', 2, /is not an HTTP proxy/, { HTTP_PROXY: 'socks5://127.0.0.1:1' }],
  [
    'hosts list',
    4,
    /through the proxy 127\.0\.0\.1:1: connection refused\n.*NO_PROXY/,
    { HTTP_PROXY: 'http://user:secret@127.0.0.1:1' },
  ],
  ['server start', 2, /^rsm: RSM_PORT takes a whole number, not 80a\n/, { RSM_PORT: '80a' }],
  ['server start --port 80b', 2, /^rsm: --port takes a whole number, not 80b\n/, { RSM_PORT: '80a' }],
  ['server start', 2, /^rsm: RSM_LOG_LEVEL=loud is not one of: DEBUG/, { RSM_LOG_LEVEL: 'loud' }],
  [
    'server start --trusted-proxy 10.0.0.0/33',
    2,
    /^rsm: --trusted-proxy takes an address or a network, not 10\.0\.0\.0\/33\n/,
  ],
  [
    'server start',
    2,
    /^rsm: RSM_TRUSTED_PROXY takes an address or a network, not lb1\n/,
    { RSM_TRUSTED_PROXY: '10.0.0.0/8,lb1' },
  ],
  ['server start', 2, /^rsm: RSM_METRICS_OPEN takes yes or no .*, not ja\n/, { RSM_METRICS_OPEN: 'ja' }],
  [
    'agent run --url http://127.0.0.1:1',
    2,
    /^rsm: RSM_AGENT_LIMIT does not take memory=64x\n/,
    { RSM_AGENT_LIMIT: 'cpu=50%, memory=64x' },
  ],
  [
    'agent run --url http://127.0.0.1:1 --enroll-token-file /x',
    2,
    /^rsm: RSM_AGENT_ENROLL_TOKEN and --enroll-token-file exclude each other\n/,
    { RSM_AGENT_ENROLL_TOKEN: 'x' },
  ],
  ['server start --server-name a', 2, /^rsm: --server-name goes with --store\n/],
  [
    'server start',
    2,
    /^rsm: RSM_STORE holds a password, .*\n.*--store-password-file/,
    { RSM_STORE: 'postgres://rsm:x@pg/rsm' },
  ],
  ["server start --data-dir ''", 2, /--data-dir is empty/],
  ["server start --keys ''", 2, /--keys is empty/],
  ["agent status --data-dir ''", 2, /--data-dir is empty/],
  ['hosts list', 5, /no such context: nosuch/, { RSM_URL: '', RSM_CONTEXT: 'nosuch' }],
]

let server: TestServer
let stop: () => unknown

test.before(async (t) => {
  // A teardown of this hook's `t` would run at the end of the hook.
  const teardown = (end: () => unknown) => {
    stop = end
  }
  server = await startTestServer({ ...t, teardown })
  await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '192.0.2.1' })
})
test.after.always(() => stop())

const wordsOf = (line: string) => line.split(' ').map((word) => (word === "''" ? '' : word))

async function refuses(t: ExecutionContext, cases: readonly Case[]): Promise<void> {
  const lines = cases.map(([line, , , env]): Line => ({ argv: wordsOf(line), ...(env ? { env } : {}) }))
  const ran = await runLines(t, server, lines)
  for (const [at, [line, exit, said]] of cases.entries()) {
    const about = `${line.slice(0, 100)}: ${ran[at]?.stderr}`
    t.is(ran[at]?.exit, exit, about)
    t.regex(ran[at]?.stderr ?? '', said, about)
    // One line names the fault, and at most one more gives advice; never a stack.
    t.regex(ran[at]?.stderr ?? '', /^rsm: [^\n]+\n( {5}[^\n]+\n)?$/, about)
    t.notRegex(ran[at]?.stderr ?? '', /internal error|node:|Validation failed/, about)
    t.is(ran[at]?.stdout, '', about)
  }
  t.is((await server.data('GET', '/api/tasks')).totalElements, 0)
}

test('an error about a bad target names it, and nothing starts', (t) => refuses(t, targets))
test('an error about a bad option names it, and nothing starts', (t) => refuses(t, options))
test('an error about a bad copy names its fault, and nothing starts', (t) => refuses(t, copies))
test('an error about a bad environment names its fault', (t) => refuses(t, surroundings))

test('a script file that is missing, unreadable, a directory, endless, too large or not text is reported as such', (t) => {
  const home = temporaryDirectory(t)
  const file = (name: string, content: string | Buffer) => {
    writeFileSync(join(home, name), content)
    return join(home, name)
  }
  mkdirSync(join(home, 'directory'))
  const faults: [string, RegExp][] = [
    [join(home, 'nosuch'), /there is no such file/],
    [join(home, 'directory'), /it is a directory/],
    ['/dev/zero', /larger than 16 MiB/],
    [file('large', 'x'.repeat(1024 * 1024 + 1)), /a script has at most 1 MiB/],
    [file('binary', Buffer.from([0x23, 0x0a, 0xff, 0xfe])), /not UTF-8: see line 2/],
    [file('nul', 'a\nb\0c'), /line 2 contains a NUL/],
    [file('empty', ''), /blank|nothing/],
  ]
  if (process.getuid?.() !== 0) {
    const secret = file('secret', 'x')
    chmodSync(secret, 0)
    faults.push([secret, /you may not read it/])
  }
  return refuses(
    t,
    faults.map(([path, said]) => [`exec -w web1 --script ${path}`, 2, said]),
  )
})

/** Runs rsm as a real process in a shell, which can redirect its streams. */
async function inShell(t: ExecutionContext, url: string, token: string, line: string) {
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: url, RSM_TOKEN: token })
  const rsm = `rsm() { '${process.execPath}' '${resolve('bin/run.js')}' "$@"; }`
  const shell = spawn('bash', ['--norc', '--noprofile', '-c', `${rsm}; ${line}`], { env })
  const [stdout, stderr, [exit]] = await Promise.all([
    text(shell.stdout),
    text(shell.stderr),
    once(shell, 'close'),
  ])
  return { exit: exit as number, stdout, stderr }
}

test('an argument that is not UTF-8 is refused, because a different text would run', async (t) => {
  const ran = await inShell(t, server.url, server.token, String.raw`rsm exec -w web1 rm $'caf\xe9'`)
  t.is(ran.exit, 2)
  t.regex(ran.stderr, /^rsm: not UTF-8: caf\ufffd\n/)
  t.is((await server.data('GET', '/api/tasks')).totalElements, 0)
})

test('a closed pipe ends a command quietly with 141; a full disk gives one line and 6', async (t) => {
  const server = await startTestServer(t)
  for (let at = 0; at < 20; at++)
    await server.data('POST', '/api/hosts', {
      hostname: `web${at}`,
      ip: '192.0.2.1',
      tags: { note: 'x'.repeat(200) },
    })
  for (const line of ['hosts list', 'hosts list --json', 'api GET /api/hosts', 'exec --help', '--version']) {
    const closed = await inShell(
      t,
      server.url,
      server.token,
      `exec 3> >(exec true); wait $!; rsm ${line} >&3`,
    )
    t.deepEqual(closed, { exit: 141, stdout: '', stderr: '' }, line)
    const full = await inShell(t, server.url, server.token, `rsm ${line} > /dev/full`)
    t.is(full.exit, 6, line)
    t.regex(full.stderr, /^[^\n]*cannot write the output: [^\n]+\n$/, line)
  }
})
