import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttp } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { type AddressInfo, createServer as createTcp } from 'node:net'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { openClient } from '../../../src/client/client.ts'
import { openTransport } from '../../../src/client/http/transport.ts'
import { RsmError } from '../../../src/core/errors.ts'
import { openConnection } from '../../../src/net/connect.ts'
import { hostNamed, startFakeServer } from '../../fixtures/fake-server.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { startConnectProxy } from '../../helpers/clients/connect-proxy.ts'

/** A server with a self-signed certificate, and the tokens it received. */
async function startTlsServer(t: ExecutionContext) {
  const directory = temporaryDirectory(t)
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')]
  const request =
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost'
  const names = ['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  execFileSync('openssl', [...request.split(' '), ...names, '-keyout', key, '-out', cert], {
    stdio: 'ignore',
  })
  const tokens: (string | undefined)[] = []
  const server = createHttps({ key: readFileSync(key), cert: readFileSync(cert) }, (seen, response) => {
    tokens.push(seen.headers.authorization)
    response.end(JSON.stringify({ code: 200, message: 'ok', data: hostNamed(1, 'web1') }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { fingerprint256 } = new X509Certificate(readFileSync(cert))
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, caFile: cert, fingerprint256, tokens }
}

test('a certificate is trusted by --ca-file or by its fingerprint, otherwise nothing is sent', async (t) => {
  const { url, caFile, fingerprint256, tokens } = await startTlsServer(t)
  const ask = async (trust: object) => (await openClient({ url, token: 'x', ...trust })).hosts.get(1)
  const error = await t.throwsAsync(ask({}), { instanceOf: RsmError })
  t.is(error.code, 'unreachable')
  t.regex(error.hint ?? '', /--ca-file/)
  const other = fingerprint256.replace(/^../, fingerprint256.startsWith('00') ? '11' : '00')
  await t.throwsAsync(ask({ tlsFingerprint: other }), { message: /not the pinned/ })
  t.deepEqual(tokens, [])
  t.is((await ask({ caFile })).hostname, 'web1')
  t.is((await ask({ tlsFingerprint: fingerprint256 })).hostname, 'web1')
  await t.throwsAsync(ask({ tlsFingerprint: 'abc' }), { message: /not a SHA-256 fingerprint/ })
  await t.throwsAsync(ask({ caFile: '/nonexistent.pem' }), { message: /cannot read the certificates/ })
})

for (const silent of ['proxy', 'server behind it'])
  test(`a request through a proxy times out if the ${silent} never answers`, async (t) => {
    const proxy = createHttp()
    proxy.on('connect', (_request, socket) => {
      t.teardown(() => socket.destroy())
      if (silent !== 'proxy') socket.write('HTTP/1.1 200 ok\r\n\r\n')
    })
    proxy.listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    t.teardown(() => proxy.close())
    const proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const connection = openConnection(
      { url: 'http://192.0.2.1', environment: { HTTP_PROXY: proxyUrl } },
      silent === 'proxy' ? 500 : 30_000,
    )
    const send = openTransport(connection, { answer: 1_000 })
    const error = await t.throwsAsync(send({ method: 'GET', path: '/', headers: {} }), {
      instanceOf: RsmError,
    })
    t.regex(error.message, /through the proxy 127\.0\.0\.1:\d+: no answer in time/)
  })

test('requests go through the proxy that the environment names, unless NO_PROXY matches the server', async (t) => {
  const server = await startFakeServer(t, {
    'GET /api/auth/me': () => ({ id: 1, username: 'ann', role: 'VIEWER' }),
  })
  const { port, tunnels } = await startConnectProxy(t, server.url)
  const proxyUrl = `http://127.0.0.1:${port}`
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'x', HTTP_PROXY: proxyUrl })
  const through = await runRsm(['whoami'], env)
  t.is(through.exit, 0, through.stderr)
  t.deepEqual(
    tunnels.map(({ to }) => to),
    [new URL(server.url).host],
  )
  t.is((await runRsm(['whoami'], { ...env, NO_PROXY: '127.0.0.1' })).exit, 0)
  t.is(tunnels.length, 1)
})

test('A16 several idle sockets closed by the server count as one lost connection, not an error', async (t) => {
  const asked = new WeakMap<object, number>()
  const waiting: (() => void)[] = []
  const server = createHttp(({ socket }, response) => {
    const times = (asked.get(socket) ?? 0) + 1
    asked.set(socket, times)
    const answer = () =>
      response.end(JSON.stringify({ code: 200, message: 'ok', data: hostNamed(1, 'web1') }))
    // Like a stopped server: a request over a socket that was idle gets no response.
    if (times > 1) socket.resetAndDestroy()
    else if (waiting.length === 3) answer()
    else if (waiting.push(answer) === 3) for (const each of waiting) each()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const client = await openClient({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
  await Promise.all([1, 2, 3].map((id) => client.hosts.get(id)))
  t.is((await client.hosts.get(1)).hostname, 'web1')
})

for (const [what, said, hint] of [
  ['SSH-2.0-x\r\n', /not HTTP/, /^if the server speaks TLS/],
  ['', /connection lost/, /^check the server and its load balancer/],
] as const)
  test(`the hint to try TLS is for responses that are not HTTP: ${what === '' ? 'without bytes' : 'with bytes'}`, async (t) => {
    const server = createTcp((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.end(what))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const client = await openClient({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
    const error = await t.throwsAsync(client.hosts.get(1), { instanceOf: RsmError })
    t.regex(error.message, said)
    t.regex(error.hint ?? '', hint)
  })
