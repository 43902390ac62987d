import test, { type ExecutionContext } from 'ava'
import { startAgent } from '../../src/agent/main.ts'
import { RsmError } from '../../src/core/errors.ts'
import { proxyFor } from '../../src/net/proxy.ts'
import { startFakeServer } from '../fixtures/fake-server.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import { agentOptions } from '../helpers/agents/agent.ts'
import { commandLine } from '../helpers/clients/command-line.ts'
import { startConnectProxy } from '../helpers/clients/connect-proxy.ts'
import { FakeServer } from '../helpers/servers/fake-server.ts'
import { adminLogin, type TestServer } from '../helpers/servers/server.ts'
import { startTlsServer } from '../helpers/servers/tls-server.ts'

/** How a server was reached: directly, through the proxy, or why not. */
type Reached = (variables: Readonly<Record<string, string>>) => Promise<string>

/** `PROXY` and `PORT` stand for the proxy's address and the server's port. */
const filled = (variables: Readonly<Record<string, string>>, proxy: number, server: string) =>
  Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [
      name,
      value.replace('PROXY', `127.0.0.1:${proxy}`).replace('PORT', new URL(server).port),
    ]),
  )

async function byCommandLine(t: ExecutionContext): Promise<Reached> {
  const server = await startFakeServer(t, {
    'GET /api/auth/me': () => ({ id: 1, username: 'ann', role: 'VIEWER' }),
  })
  const { port, tunnels } = await startConnectProxy(t, server.url)
  const rsm = commandLine(t, { url: server.url, token: 'x' } as TestServer)
  return async (variables) => {
    const before = tunnels.length
    const { exit, stderr } = await rsm(['whoami'], { env: filled(variables, port, server.url) })
    if (exit !== 0) return `${exit}: ${stderr.replace(/^rsm: (.*)[^]*$/, '$1')}`
    return tunnels.length > before ? 'through the proxy' : 'directly'
  }
}

async function byAgent(t: ExecutionContext): Promise<Reached> {
  const server = await FakeServer.start()
  t.teardown(() => server.close())
  const { port, tunnels } = await startConnectProxy(t, server.url)
  return async (variables) => {
    const before = tunnels.length
    const links = server.hellos.length
    const environment = filled(variables, port, server.url)
    try {
      const agent = await startAgent({ ...agentOptions(server, temporaryDirectory(t)), environment })
      await server.linked(links + 1)
      await agent.stop()
    } catch (error) {
      if (error instanceof RsmError && error.code === 'usage') return `2: ${error.message}`
      throw error
    }
    return tunnels.length > before ? 'through the proxy' : 'directly'
  }
}

const none = 'is not an HTTP proxy'
const cases: readonly (readonly [variables: Record<string, string>, reached: string])[] = [
  [{}, 'directly'],
  [{ HTTP_PROXY: 'http://PROXY' }, 'through the proxy'],
  [{ http_proxy: 'PROXY' }, 'through the proxy'],
  [{ HTTP_PROXY: 'http://ann:pass%20word@PROXY/' }, 'through the proxy'],
  [{ HTTPS_PROXY: 'http://PROXY' }, 'directly'],
  [{ http_proxy: 'http://PROXY', HTTP_PROXY: 'http://127.0.0.1:1' }, 'through the proxy'],
  [{ http_proxy: '', HTTP_PROXY: 'http://PROXY' }, 'through the proxy'],
  [{ HTTP_PROXY: 'http://PROXY', NO_PROXY: 'example.org,127.0.0.1' }, 'directly'],
  [{ HTTP_PROXY: 'http://PROXY', no_proxy: '', NO_PROXY: '127.0.0.1' }, 'directly'],
  [{ HTTP_PROXY: 'http://PROXY', NO_PROXY: '127.0.0.1:PORT' }, 'directly'],
  [{ HTTP_PROXY: 'http://PROXY', NO_PROXY: '127.0.0.1:1' }, 'through the proxy'],
  [{ HTTP_PROXY: 'http://PROXY', NO_PROXY: '*' }, 'directly'],
  [{ HTTP_PROXY: 'http://PROXY', NO_PROXY: '127.0.0.0/8' }, 'directly'],
  [{ HTTP_PROXY: 'http://PROXY', no_proxy: '127.0.0.1/32:PORT' }, 'directly'],
  [{ HTTP_PROXY: 'http://PROXY', NO_PROXY: '127.*' }, 'through the proxy'],
  [{ HTTP_PROXY: 'http://' }, `2: HTTP_PROXY ${none}`],
  [{ http_proxy: 'http://host:port' }, `2: http_proxy ${none}`],
  [{ HTTP_PROXY: 'http://%zz:secret@PROXY' }, `2: HTTP_PROXY ${none}`],
  [{ http_proxy: 'socks5://PROXY' }, `2: http_proxy ${none}, but a SOCKS proxy`],
  [{ http_proxy: 'socks5://PROXY', NO_PROXY: '127.0.0.1' }, 'directly'],
]

test('agent and command line read the proxy variables alike', async (t) => {
  const [agent, rsm] = [await byAgent(t), await byCommandLine(t)]
  for (const [variables, reached] of cases) {
    const what = JSON.stringify(variables)
    t.is(await agent(variables), reached, `agent: ${what}`)
    t.is(await rsm(variables), reached, `command line: ${what}`)
  }
})

const p = { HTTPS_PROXY: 'http://p:3128' }
const names: readonly (readonly [url: string, variables: Record<string, string>, proxy: string | null])[] = [
  ['https://rsm.example', p, 'p:3128'],
  ['http://rsm.example', p, null],
  ['https://rsm.example', { https_proxy: '', ...p }, 'p:3128'],
  ['https://rsm.example', { ...p, NO_PROXY: 'other, .example' }, null],
  ['https://RSM.example', { ...p, NO_PROXY: 'Example' }, null],
  ['https://rsm.example', { ...p, NO_PROXY: 'ample' }, 'p:3128'],
  ['https://rsm.example', { ...p, NO_PROXY: '*.example' }, null],
  ['https://rsm.example', { ...p, NO_PROXY: 'rsm.example:443' }, null],
  ['https://rsm.example:8443', { ...p, no_proxy: 'rsm.example:443' }, 'p:3128'],
  ['https://rsm.example', { ...p, NO_PROXY: ' , ' }, 'p:3128'],
  ['https://[2001:db8::1]', { ...p, NO_PROXY: '2001:db8::1' }, null],
  ['https://[2001:db8::1]', { ...p, NO_PROXY: '[2001:db8::1]:443' }, null],
  ['https://[2001:db8::1]', { ...p, NO_PROXY: '[2001:db8::1]:8443' }, 'p:3128'],
  ['https://[2001:db8::1]', { ...p, NO_PROXY: '2001:0DB8:0::1' }, null],
  ['https://[fd00::7]', { ...p, NO_PROXY: 'fd00::/8' }, null],
  ['https://[fd00::7]', { ...p, NO_PROXY: 'fd00::7/128' }, null],
  ['https://[fd00::7]', { ...p, NO_PROXY: 'fd00:1::/32' }, 'p:3128'],
  ['https://[fd00::7]', { ...p, NO_PROXY: '[fd00::/8]:443' }, null],
  ['https://[fd00::7]', { ...p, NO_PROXY: '[fd00::/8]:8443' }, 'p:3128'],
  ['https://10.1.2.3', { ...p, NO_PROXY: 'other 10.0.0.0/8:443' }, null],
  ['https://10.1.2.3', { ...p, NO_PROXY: '10.0.0.0/8:8443' }, 'p:3128'],
  ['https://10.1.2.3', { ...p, NO_PROXY: '0.0.0.0/0' }, null],
]
for (const [url, variables, proxy] of names)
  test(`${url} with ${JSON.stringify(variables)} goes ${proxy ? `through ${proxy}` : 'directly'}`, (t) => {
    t.is(proxyFor(new URL(url), variables)?.host ?? null, proxy)
  })

for (const [list, told] of [
  ['127.*', 'NO_PROXY has 127.*, which'],
  ['a.example, 10., b.example,10.0.0.0/33', 'NO_PROXY has 10., 10.0.0.0/33, which'],
  ['http://rsm.example', 'NO_PROXY has http://rsm.example, which'],
  ['127.*, 127.0.0.1', null],
  ['localhost,.a.example,*.b.example,c_1.example.:443,fd00::/8,*', null],
] as const)
  test(`NO_PROXY=${list} ${told === null ? 'causes no warning' : 'causes a warning'}`, (t) => {
    const warnings: string[] = []
    proxyFor(new URL('http://127.0.0.1'), { HTTP_PROXY: 'p', NO_PROXY: list }, (text) => warnings.push(text))
    t.deepEqual(
      warnings.map((text) => text.startsWith(told ?? '?')),
      told === null ? [] : [true],
      warnings.join(),
    )
    proxyFor(new URL('http://127.0.0.1'), { NO_PROXY: list }, (text) => t.fail(text))
  })

test('agent and command line warn once about an invalid entry of NO_PROXY', async (t) => {
  const fake = await startFakeServer(t, { 'GET /api/auth/me': () => ({ id: 1, username: 'ann' }) })
  const { port } = await startConnectProxy(t, fake.url)
  const variables = { HTTP_PROXY: `127.0.0.1:${port}`, no_proxy: '127.*' }
  const rsm = commandLine(t, { url: fake.url, token: 'x' } as TestServer)
  const { exit, stderr } = await rsm(['whoami', '--json'], { env: variables })
  t.is(exit, 0, stderr)
  t.regex(stderr, /^rsm: warning: no_proxy has 127\.\*, which matches no server: .*\n$/)

  const server = await FakeServer.start()
  t.teardown(() => server.close())
  const warned: string[] = []
  const proxy = await startConnectProxy(t, server.url)
  const agent = await startAgent({
    ...agentOptions(server, temporaryDirectory(t)),
    logLevel: 'WARN',
    log: (_, line) => warned.push(line),
    environment: { HTTP_PROXY: `127.0.0.1:${proxy.port}`, no_proxy: '127.*' },
  })
  await server.linked(1)
  await agent.stop()
  t.is(warned.filter((line) => line.startsWith('no_proxy has 127.*')).length, 1, warned.join('\n'))
})

test('agent and command line also pin a certificate through a proxy', async (t) => {
  const { server, url } = await startTlsServer(t, { selfSigned: true })
  const { port, tunnels } = await startConnectProxy(t, url)
  const pin = server.fingerprint ?? ''
  const other = pin.replace(/(?<=\/\/)./, (first) => (first === 'A' ? 'B' : 'A'))
  const variables = { HTTPS_PROXY: `http://127.0.0.1:${port}` }
  const env = cleanEnv(temporaryDirectory(t), variables)
  const login = ['login', url, '-u', adminLogin.username, '--password-stdin']
  const loggedIn = await runRsm([...login, '--tls-fingerprint', pin], env, adminLogin.password)
  t.is(loggedIn.exit, 0, loggedIn.stderr)
  const refused = await runRsm(['whoami', '--tls-fingerprint', other], env)
  t.is(refused.exit, 4)
  t.regex(refused.stderr, /through the proxy 127\.0\.0\.1:\d+: its key is \S+, not the pinned/)

  const joined = await runRsm(['hosts', 'join'], env)
  const [, token = ''] = /^ RSM_AGENT_ENROLL_TOKEN=(\S+)/.exec(joined.stdout) ?? []
  const stop = new AbortController()
  const told: string[] = []
  const options = {
    ...agentOptions({ url }, temporaryDirectory(t)),
    enrollToken: token,
    environment: variables,
    signal: stop.signal,
  }
  const log = (_level: string, _line: string, more?: object) => {
    told.push(JSON.stringify(more))
    stop.abort()
  }
  await t.throwsAsync(startAgent({ ...options, tlsFingerprint: other, logLevel: 'WARN', log }))
  t.regex(told[0] ?? '', /its key is \S+, not the pinned/)
  const before = tunnels.length
  const agent = await startAgent({ ...options, tlsFingerprint: pin, signal: undefined })
  t.truthy(agent.hostId)
  t.true(tunnels.length > before)
  await agent.stop()
})
