import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import test from 'ava'
import { keptCertificate } from '../../../src/server/tls/tls.ts'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { said } from '../../helpers/programs/said.ts'

const password = 'a password for TLS'
const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** Starts the real binary, which keeps running; `ready` is its first JSON on stdout. */
async function stayUp(t: ExecutionContext, argv: string[], env: Record<string, string>) {
  const running = startRsm([...argv, '--json'], env)
  t.teardown(async () => {
    running.child.kill()
    await running.done
  })
  return {
    ...running,
    ready: JSON.parse(await said(running.child, '}\n')) as Record<string, string | number>,
  }
}

test('client and agent pin the certificate of a self-signed server, and refuse any other', async (t) => {
  const home = temporaryDirectory(t)
  const env = cleanEnv(home, {
    RSM_ADMIN_PASSWORD: password,
    RSM_LOG_LEVEL: 'ERROR',
    RSM_AGENT_LOG_LEVEL: 'ERROR',
  })
  const start = ['server', 'start', '--port', '0', '--tls-self-signed', '--data-dir', join(home, 'server')]
  const { ready } = await stayUp(t, start, env)
  const [url, fingerprint] = [String(ready['url']), String(ready['fingerprint'])]
  t.regex(url, /^https:/)
  t.regex(fingerprint, /^sha256\/\/[A-Za-z0-9+/]{43}=$/)

  const login = (...trust: string[]) =>
    runRsm(['login', url, '-u', 'admin', '--password-stdin', ...trust], env, password)
  const wrong = `sha256:${'0'.repeat(64)}`
  const [stranger, strangeKey, unknown, byFile] = await Promise.all([
    login('--tls-fingerprint', wrong),
    login('--tls-fingerprint', `sha256//${'A'.repeat(43)}=`),
    login(),
    login('--ca-file', join(home, 'server', 'keys', 'tls.crt')),
  ])
  t.is(stranger.exit, 4)
  t.regex(
    stranger.stderr,
    /its certificate is sha256:[0-9a-f]{64}, not the pinned sha256:0{64}\n.*who runs the server/,
  )
  t.is(strangeKey.exit, 4)
  t.true(
    strangeKey.stderr.includes(`its key is ${fingerprint}, not the pinned sha256//AAA`),
    strangeKey.stderr,
  )
  t.is(unknown.exit, 4)
  t.regex(unknown.stderr, /not trusted\n.*--ca-file FILE.*--tls-fingerprint/)
  t.is(byFile.exit, 0, byFile.stderr)
  const plain = await runRsm(['whoami', '--url', url.replace('https', 'http')], { ...env, RSM_TOKEN: 'x' })
  t.is(plain.exit, 4)
  t.regex(plain.stderr, /use https:/)

  const certificate = new X509Certificate(readFileSync(join(home, 'server', 'keys', 'tls.crt')))
  t.is((await login('--tls-fingerprint', `sha256:${certificate.fingerprint256}`)).exit, 0)
  t.is((await login('--tls-fingerprint', fingerprint)).exit, 0)
  const { stdout: line } = await runRsm(['hosts', 'join'], env)
  const [, token = '', words = ''] = /^ RSM_AGENT_ENROLL_TOKEN=(\S+) rsm (.*)\n$/.exec(line) ?? []
  t.true(words.endsWith(`--tls-fingerprint ${fingerprint}`), line)
  const agent = [...words.split(' '), '--hostname', 'web1', '--data-dir', join(home, 'agent')]
  await stayUp(t, agent, { ...env, RSM_AGENT_ENROLL_TOKEN: token })
  const ran = await runRsm(['exec', '-w', 'web1', 'echo over wss'], env)
  t.is(ran.stdout, 'web1: over wss\n', ran.stderr)
  const tokens = JSON.parse(readFileSync(join(home, 'config', 'rsm', 'tokens.json'), 'utf8')) as Record<
    string,
    { token: string }
  >
  const [stored] = Object.values(tokens)
  const byAuthority = cleanEnv(temporaryDirectory(t), {
    RSM_URL: url,
    RSM_TOKEN: stored?.token ?? '',
    RSM_CA_FILE: join(home, 'server', 'keys', 'tls.crt'),
  })
  for (const trusting of [env, byAuthority]) {
    const terminal = await runRsm(['terminal', 'web1', '--shell', 'sh', '--', 'echo', 'over wss'], trusting)
    t.is(terminal.stdout, 'over wss\n', terminal.stderr)
  }
  const mistrusted = await runRsm(['terminal', 'web1', '--tls-fingerprint', wrong, '--', 'true'], env)
  t.is(mistrusted.exit, 4)

  const elsewhere = [
    'agent',
    'run',
    '--url',
    url,
    '--hostname',
    'web2',
    '--data-dir',
    join(home, 'untrusting'),
  ]
  const untrusting = startRsm(elsewhere, {
    ...env,
    RSM_AGENT_ENROLL_TOKEN: token,
    RSM_AGENT_LOG_LEVEL: 'WARN',
  })
  await untrusting.shows('retryInMs')
  t.regex(
    untrusting.out.stderr,
    /self-signed certificate.*--ca-file FILE \(RSM_CA_FILE\), or --tls-fingerprint PIN \(RSM_AGENT_TLS_FINGERPRINT\).*"not registered yet"/,
  )
  untrusting.child.kill()
  await untrusting.done
  const unknownToken = await runRsm([...elsewhere, '--tls-fingerprint', fingerprint], {
    ...env,
    RSM_AGENT_ENROLL_TOKEN: 'rsm_enr_mistyped',
  })
  t.is(unknownToken.exit, 3)
  t.regex(unknownToken.stderr, /refused to register this host: .*revoked\n.*rsm hosts join/)

  const bad = await runRsm(
    ['agent', 'run', '--url', url, '--tls-fingerprint', 'abc', '--data-dir', join(home, 'bad')],
    env,
  )
  t.is(bad.exit, 2)
  t.regex(bad.stderr, /not a SHA-256 fingerprint: abc/)
})

test('SIGHUP loads a renewed certificate', async (t) => {
  const home = temporaryDirectory(t)
  const [files, renewed] = [temporaryDirectory(t), temporaryDirectory(t)]
  const first = await keptCertificate(files, 'localhost', silent, Date.now())
  const second = await keptCertificate(renewed, 'localhost', silent, Date.now())
  const [cert, key] = [join(files, 'tls.crt'), join(files, 'tls.key')]
  const start = ['server', 'start', '--port', '0', '--data-dir', join(home, 'server')]
  const server = await stayUp(t, [...start, '--tls-cert', cert, '--tls-key', key], cleanEnv(home))
  t.is(server.ready['fingerprint'], first.fingerprint)
  await copyFile(join(renewed, 'tls.crt'), cert)
  await copyFile(join(renewed, 'tls.key'), key)
  server.child.kill('SIGHUP')
  await server.shows(second.fingerprint)
  server.child.kill('SIGTERM')
  const [code] = (await once(server.child, 'exit')) as [number]
  t.is(code, 0)
})
