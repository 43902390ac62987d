import { once } from 'node:events'
import { type AddressInfo, connect, createServer, Socket } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { createClients } from '../../../src/server/access/client-address.ts'
import type { ServerOptions } from '../../../src/server/app/options.ts'
import { createListener } from '../../../src/server/http/listener.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { localPreamble, preamble, preambleOf } from '../../helpers/servers/preamble.ts'
import { adminLogin, startTestServer } from '../../helpers/servers/server.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'
import { startTlsServer } from '../../helpers/servers/tls-server.ts'
import { ask, type Exchange, login, portOf, upgrade } from '../../helpers/servers/wire-request.ts'
import { ScriptedTerminal } from '../../helpers/terminals/terminal-client.ts'
import { openTerminal, withTerminals } from '../../helpers/terminals/terminals.ts'
import { until } from '../../helpers/until.ts'

const proxy = '127.0.0.1'
const stranger = '127.0.0.2'

const forwarded = (value: string) => `x-forwarded-for: ${value}`

/** A server that trusts 127.0.0.1, and the client address that the audit log records for a login. */
async function behindProxy(t: ExecutionContext, options: Partial<ServerOptions> = {}) {
  const server = await startTestServer(t, { trustedProxies: ['127.0.0.1', '127.0.0.8/30'], ...options })
  async function clientOf({ headers = [], ...exchange }: Exchange): Promise<string | number> {
    const { status } = await ask(server, login(adminLogin.password, headers), exchange)
    if (status !== 200) return status
    const { content } = await server.data('GET', '/api/audit?action=user.login')
    return content[0].ip
  }
  return { server, clientOf }
}

const tlv = Buffer.from([0x04, 0, 3, 1, 2, 3])
const ipv4 = preamble('198.51.100.7')
const told: readonly (readonly [what: string, exchange: Exchange, client: string | number])[] = [
  ['nothing', {}, proxy],
  ['a client', { headers: [forwarded('198.51.100.7')] }, '198.51.100.7'],
  [
    'an address sent by the client itself',
    { headers: [forwarded('203.0.113.9, 198.51.100.7')] },
    '198.51.100.7',
  ],
  ['junk from the client', { headers: [forwarded('<b>unknown, 198.51.100.7')] }, '198.51.100.7'],
  [
    'a chain of trusted proxies',
    { headers: [forwarded('198.51.100.7, 127.0.0.9,127.0.0.1')] },
    '198.51.100.7',
  ],
  ['trusted proxies only', { headers: [forwarded('127.0.0.9, 127.0.0.10')] }, '127.0.0.9'],
  ['two headers', { headers: [forwarded('203.0.113.9'), forwarded('198.51.100.7')] }, '198.51.100.7'],
  ['an address with a port', { headers: [forwarded('[2001:db8::7]:443')] }, '2001:db8::7'],
  ['an IPv4-mapped address', { headers: [forwarded('::ffff:198.51.100.7')] }, '198.51.100.7'],
  [
    'an IPv4-mapped proxy after it',
    { headers: [forwarded('198.51.100.7, ::ffff:127.0.0.9')] },
    '198.51.100.7',
  ],
  ['no address', { headers: [forwarded('unknown')] }, 400],
  ['an empty header', { headers: [forwarded('')] }, 400],
  ['no address last', { headers: [forwarded('198.51.100.7, unknown')] }, 400],
  ['no address before a trusted one', { headers: [forwarded('unknown, 127.0.0.9')] }, 400],
  ['a zone', { headers: [forwarded('fe80::1%eth0')] }, 400],
  ['an unknown scheme', { headers: [forwarded('198.51.100.7'), 'x-forwarded-proto: gopher'] }, 400],
  ['PROXY of IPv4', { preamble: ipv4 }, '198.51.100.7'],
  ['PROXY of IPv6', { preamble: preamble('2001:db8::7') }, '2001:db8::7'],
  ['PROXY of IPv4 in IPv6', { preamble: preamble('::ffff:c633:6407') }, '198.51.100.7'],
  ['PROXY with more fields', { preamble: preamble('198.51.100.7', tlv) }, '198.51.100.7'],
  ['PROXY in single bytes', { preamble: ipv4, inBytes: true }, '198.51.100.7'],
  [
    'PROXY, and a header of the client',
    { preamble: ipv4, headers: [forwarded('203.0.113.9')] },
    '198.51.100.7',
  ],
  [
    'PROXY, and junk in a header of the client',
    { preamble: ipv4, headers: [forwarded('junk')] },
    '198.51.100.7',
  ],
  ['PROXY with LOCAL', { preamble: localPreamble }, proxy],
  ['PROXY with LOCAL, and a header', { preamble: localPreamble, headers: [forwarded('203.0.113.9')] }, proxy],
  ['PROXY of no network', { preamble: preambleOf(0x21, 0, tlv) }, proxy],
  ['PROXY of another version', { preamble: preambleOf(0x31, 0x11, Buffer.alloc(12)) }, 400],
  ['PROXY of another command', { preamble: preambleOf(0x2f, 0x11, Buffer.alloc(12)) }, 400],
  ['PROXY without room for addresses', { preamble: preambleOf(0x21, 0x21, Buffer.alloc(12)) }, 400],
  ['an endless PROXY preamble', { preamble: preambleOf(0x21, 0x11, Buffer.alloc(12), 65_535) }, 400],
  ['the older PROXY protocol', { preamble: Buffer.from('PROXY TCP4 198.51.100.7 192.0.2.1 1 2\r\n') }, 400],
]

test('a trusted proxy determines the client address', async (t) => {
  const { clientOf } = await behindProxy(t)
  for (const [what, exchange, client] of told) t.is(await clientOf(exchange), client, what)
})

test('log lines contain the client address from a trusted proxy, and otherwise that of the peer', async (t) => {
  const server = await startServerProcess(t, { logLevel: 'DEBUG', options: { trustedProxies: [proxy] } })
  const request = (path: string, ...headers: string[]) =>
    ['GET ' + path + ' HTTP/1.1', 'host: x', ...headers, 'connection: close', '', ''].join('\r\n')
  const asked: readonly (readonly [path: string, header: string, exchange: Exchange, ip: string])[] = [
    ['/api/health', forwarded('198.51.100.7'), {}, '198.51.100.7'],
    ['/api/ready', 'accept: */*', { preamble: preamble('2001:db8::7') }, '2001:db8::7'],
    ['/nowhere', forwarded('198.51.100.8'), {}, '198.51.100.8'],
    ['/api/hosts', forwarded('junk'), {}, proxy],
    ['/api/tasks', forwarded('198.51.100.9'), { from: stranger }, stranger],
  ]
  for (const [n, [path, header, exchange]] of asked.entries())
    await ask(server, request(path, header, `x-request-id: asked-${n}`), exchange)
  const lineOf = (n: number) =>
    server
      .logged()
      .split('\n')
      .find((line) => line.includes(`"requestId":"asked-${n}"`))
  await until('all requests are logged', () => asked.every((_, n) => lineOf(n) !== undefined))
  for (const [n, [path, , , ip]] of asked.entries()) t.is(JSON.parse(lineOf(n) ?? '').ip, ip, path)
})

test('headers from other peers are ignored, whatever they contain, and a PROXY preamble is a 400', async (t) => {
  const { server, clientOf } = await behindProxy(t)
  for (const value of ['198.51.100.7', 'junk', '', '127.0.0.1'])
    t.is(
      await clientOf({ from: stranger, headers: [forwarded(value), 'x-forwarded-proto: gopher'] }),
      stranger,
      value,
    )
  for (const begins of [ipv4, localPreamble]) t.is(await clientOf({ from: stranger, preamble: begins }), 400)
  const { text } = await ask(server, login('x'), { from: stranger, preamble: ipv4 })
  t.regex(text, /127\.0\.0\.2 is not a trusted proxy/)
})

test('without trusted proxies headers are ignored, and a PROXY preamble is a 400', async (t) => {
  const { clientOf } = await behindProxy(t, { trustedProxies: [] })
  t.is(await clientOf({ headers: [forwarded('198.51.100.7'), 'x-forwarded-proto: gopher'] }), proxy)
  t.is(await clientOf({ preamble: ipv4 }), 400)
})

test('a proxy trusted by its IPv4 address is recognized on a server that listens on IPv6 as well', async (t) => {
  const { clientOf } = await behindProxy(t, { host: '::', insecureHttp: true })
  t.is(await clientOf({ headers: [forwarded('198.51.100.7')] }), '198.51.100.7')
  t.is(await clientOf({ preamble: ipv4 }), '198.51.100.7')
  t.is(await clientOf({ from: stranger, preamble: ipv4 }), 400)
})

test('a PROXY preamble comes before the TLS handshake, and headers come inside TLS', async (t) => {
  const { server } = await startTlsServer(t, { selfSigned: true }, { trustedProxies: [proxy] })
  async function clientOf({ headers = [], ...exchange }: Exchange): Promise<unknown> {
    const { text } = await ask(server, login(adminLogin.password, headers), { ...exchange, tls: true })
    const token = /"token":"([^"]+)"/.exec(text)?.[1]
    const get = `GET /api/audit?action=user.login HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}`
    const audit = await ask(server, `${get}\r\nconnection: close\r\n\r\n`, { tls: true })
    return [...audit.text.matchAll(/"ip":"([^"]*)"/g)].map(([, ip]) => ip)
  }
  const all = [proxy]
  t.deepEqual(await clientOf({}), all)
  for (const exchange of [
    { preamble: ipv4 },
    { preamble: ipv4, inBytes: true },
    { headers: [forwarded('198.51.100.7')] },
  ]) {
    all.unshift('198.51.100.7')
    t.deepEqual(await clientOf(exchange), all)
  }
  // HAProxy sends the preamble in one piece with the first bytes of the client.
  const relay = createServer((client) => {
    const upstream = connect(server.port, '127.0.0.1')
    client.once('data', (first) => {
      upstream.write(Buffer.concat([ipv4, first]))
      client.pipe(upstream).pipe(client)
    })
    for (const socket of [client, upstream]) socket.on('error', () => undefined)
  }).listen(0, '127.0.0.1')
  t.teardown(() => relay.close())
  await once(relay, 'listening')
  const url = `https://127.0.0.1:${(relay.address() as AddressInfo).port}`
  t.is((await ask({ url }, login(adminLogin.password), { tls: true })).status, 200)
  all.unshift('198.51.100.7')
  const refused = await ask(server, '', { from: stranger, preamble: ipv4 })
  t.is(refused.status, 400)
  all.unshift(stranger)
  t.deepEqual(await clientOf({ from: stranger, headers: [forwarded('198.51.100.7')] }), all)
})

test('the client of a PROXY preamble applies to all requests of its connection, and to no other', async (t) => {
  const { server } = await behindProxy(t)
  const again = login(adminLogin.password).replace('connection: close\r\n', '')
  const { text } = await ask(server, again + again + login(adminLogin.password), { preamble: ipv4 })
  t.is(text.match(/HTTP\/1\.1 200/g)?.length, 3)
  const { content } = await server.data('GET', '/api/audit?action=user.login')
  t.deepEqual(
    content.slice(0, 3).map(({ ip }: { ip: string }) => ip),
    ['198.51.100.7', '198.51.100.7', '198.51.100.7'],
  )
})

test('wrong passwords lock out the client, not everyone behind its proxy', async (t) => {
  const { server } = await behindProxy(t)
  const from = async (client: string, password: string) =>
    (await ask(server, login(password, [forwarded(client)]))).status
  for (let n = 0; n < 10; n++) t.is(await from('198.51.100.7', `guess ${n}`), 401)
  t.is(await from('198.51.100.7', adminLogin.password), 429)
  t.is(await from('198.51.100.8', adminLogin.password), 200)
  t.is((await ask(server, login(adminLogin.password), { preamble: preamble('198.51.100.7') })).status, 429)
  t.is((await ask(server, login(adminLogin.password), { preamble: preamble('198.51.100.9') })).status, 200)
})

test('links of agents and terminals are attributed to the client address', async (t) => {
  const { server } = await behindProxy(t)
  const refused = async (headers: readonly string[], exchange: Exchange = {}) => {
    const { status } = await ask(
      server,
      upgrade('/ws/agent/a1', ['authorization: Bearer junk', ...headers]),
      exchange,
    )
    if (status !== 401) return status
    const { content } = await server.data('GET', '/api/audit?action=access.refuse')
    return content[0].ip
  }
  t.is(await refused([forwarded('198.51.100.7')]), '198.51.100.7')
  t.is(await refused([], { preamble: preamble('2001:db8::7') }), '2001:db8::7')
  t.is(await refused([forwarded('198.51.100.7')], { from: stranger }), stranger)
  t.is(await refused([forwarded('junk')]), 400)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, withTerminals)
  const { sessionId } = await openTerminal(server, agent, identity.hostId)
  const client = await ScriptedTerminal.attach(server, sessionId, {
    headers: { 'x-forwarded-for': '198.51.100.7' },
  })
  await client.next('TERMINAL_ATTACHED')
  await until('the audit log has the attaching address', async () => {
    const { content } = await server.data('GET', '/api/audit?action=terminal.attach')
    return content[0]?.ip === '198.51.100.7'
  })
})

test('S08 a page opens a terminal only if its scheme is the one that the trusted proxy reports', async (t) => {
  const { server } = await behindProxy(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, withTerminals)
  const { sessionId } = await openTerminal(server, agent, identity.hostId)
  const attach = async (origin: string, headers: readonly string[], from = proxy) => {
    const all = [`authorization: Bearer ${server.token}`, `origin: ${origin}`, ...headers]
    const socket = connect({ host: '127.0.0.1', port: portOf(server), localAddress: from })
    t.teardown(() => socket.destroy())
    socket.write(upgrade(`/ws/terminal/${sessionId}`, all))
    const [answer] = await once(socket, 'data')
    return Number(/^HTTP\/1\.1 (\d+)/.exec(String(answer))?.[1])
  }
  t.is(await attach('https://rsm.example', ['x-forwarded-proto: https']), 101)
  t.is(await attach('http://rsm.example', ['x-forwarded-proto: https']), 403)
  t.is(await attach('http://rsm.example', ['x-forwarded-proto: ws']), 101)
  t.is(await attach('https://rsm.example', ['x-forwarded-proto: http']), 403)
  t.is(await attach('https://rsm.example', ['x-forwarded-proto: junk']), 400)
  t.is(await attach('http://rsm.example', []), 101)
  t.is(await attach('http://rsm.example', ['x-forwarded-proto: https'], stranger), 101)
})

test('an upgrade to anything but a WebSocket is answered over a connection with a preamble as well', async (t) => {
  const { server } = await behindProxy(t)
  const offer = 'GET /api/health HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: h2c\r\n\r\n'
  const { text } = await ask(server, offer + login(adminLogin.password), { preamble: ipv4 })
  t.is(text.match(/HTTP\/1\.1 200/g)?.length, 2)
  const { content } = await server.data('GET', '/api/audit?action=user.login')
  t.is(content[0].ip, '198.51.100.7')
})

test('S10 a connection that never completes its preamble is cut off, while others are served', async (t) => {
  const server = createListener(null, { headers: 300 }, createClients(['127.0.0.1'])).create(
    (_request, response) => response.end('served'),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const request = 'GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'
  const [half, silent, served] = await Promise.all([
    ask({ url }, '', { preamble: ipv4.subarray(0, 20) }),
    ask({ url }, ''),
    ask({ url }, request, { preamble: ipv4 }),
  ])
  t.deepEqual([half.text, silent.text], ['', ''])
  t.regex(served.text, /served/)
})

test('S10 connections of a trusted proxy do not count towards the limit per address', (t) => {
  const server = createListener(null, { socketsPerAddress: 1 }, createClients(['192.0.2.0/24'])).create(
    () => undefined,
  )
  const come = (remoteAddress: string) => {
    const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: remoteAddress })
    t.teardown(() => socket.destroy())
    server.emit('connection', socket)
    return !socket.destroyed
  }
  t.deepEqual(['192.0.2.1', '192.0.2.1', '192.0.2.1'].map(come), [true, true, true])
  t.deepEqual(['203.0.113.1', '203.0.113.1', '::ffff:192.0.2.1', '::ffff:192.0.2.1'].map(come), [
    true,
    false,
    true,
    true,
  ])
})
