import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import {
  createListener,
  type ListenerLimits,
  limitSockets,
  trackUnusedConnections,
} from '../../../src/server/http/listener.ts'
import { declineUpgrade } from '../../../src/server/listeners/web-sockets.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

function opened(t: ExecutionContext, port: number): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  return socket
}

/** Reads until the other side closes, or resets because it was written to after that. */
async function readAll(socket: Socket): Promise<string> {
  let text = ''
  try {
    for await (const piece of socket) text += String(piece)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error
  }
  return text
}

async function listening(t: ExecutionContext, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

const answering = (t: ExecutionContext, limits: Partial<ListenerLimits>) =>
  listening(
    t,
    createListener(null, limits).create((_request, response) => response.end('served')),
  )

test('S08 every answer, errors included, forbids sniffing, framing and embedding; agents get only nosniff', async (t) => {
  const server = await startTestServer(t)
  for (const path of ['/api/health', '/api/hosts', '/nope', '/api/hosts/9999']) {
    const { headers } = await server.api('GET', path)
    t.is(headers.get('x-content-type-options'), 'nosniff', path)
    t.is(headers.get('x-frame-options'), 'DENY', path)
    t.is(headers.get('referrer-policy'), 'no-referrer', path)
    t.is(headers.get('content-security-policy'), "default-src 'none'; frame-ancestors 'none'", path)
    t.is(headers.get('cross-origin-resource-policy'), 'same-origin', path)
    t.is(headers.get('strict-transport-security'), null, path)
  }
  const heartbeat = await server.api('POST', '/api/agent/heartbeat', {})
  t.is(heartbeat.headers.get('x-content-type-options'), 'nosniff')
  t.is(heartbeat.headers.get('x-frame-options'), null)
  const socket = opened(t, Number(new URL(server.url).port))
  socket.write('nonsense\r\n\r\n')
  t.regex(await readAll(socket), /^HTTP\/1\.1 400 [\s\S]*x-frame-options: DENY/)
})

test('S10 oversized headers are answered with a 431 in the envelope', async (t) => {
  const server = await startTestServer(t)
  const socket = opened(t, Number(new URL(server.url).port))
  socket.write(`GET /api/health HTTP/1.1\r\nhost: x\r\nx-large: ${'x'.repeat(17 * 1024)}\r\n\r\n`)
  const answer = await readAll(socket)
  t.regex(answer, /^HTTP\/1\.1 431 /)
  t.deepEqual(JSON.parse(answer.split('\r\n\r\n')[1] ?? ''), {
    code: 431,
    message: 'The headers of the request are too large',
  })
})

test('S10 a client that sends its headers slowly is cut off while others are served', async (t) => {
  const port = await answering(t, { headers: 2000, request: 4000, check: 50 })
  const slow = opened(t, port)
  slow.write('GET / HTTP/1.1\r\nhost: x\r\n')
  const dripping = setInterval(() => slow.write('x-more: 1\r\n'), 50)
  t.teardown(() => clearInterval(dripping))
  const [cut, served] = await Promise.all([
    readAll(slow),
    fetch(`http://127.0.0.1:${port}`).then((answer) => answer.text()),
  ])
  t.is(served, 'served')
  t.regex(cut, /^(HTTP\/1\.1 408 |$)/)
})

test('S10 sockets of one address over its limit are closed, and new ones are accepted as others close', async (t) => {
  const server = createServer((_request, response) => response.end('served'))
  limitSockets(server, 2, () => false)
  const port = await listening(t, server)
  const [first] = [opened(t, port), opened(t, port)]
  await once(server, 'connection')
  await once(server, 'connection')
  const third = opened(t, port)
  t.is(await readAll(third).catch(() => ''), '')
  const left = once(first, 'close')
  first.end()
  await left
  const request = opened(t, port)
  request.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  t.regex(await readAll(request), /served/)
})

test('an offer to upgrade to anything but a WebSocket is ignored: the request is answered and its body read', async (t) => {
  const server = await startTestServer(t)
  const port = Number(new URL(server.url).port)
  const offer = 'connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n'
  const ask = (text: string) => {
    const socket = opened(t, port)
    socket.write(text)
    return once(socket, 'data').then(([data]) => String(data))
  }
  t.regex(await ask(`GET /api/health HTTP/1.1\r\nhost: x\r\n${offer}\r\n`), /^HTTP\/1\.1 200 /)
  const body = JSON.stringify({ username: 'admin', password: 'a password for tests' })
  const login = `POST /api/auth/login HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n${offer}\r\n`
  t.regex(await ask(login + body), /^HTTP\/1\.1 200 [\s\S]*rsm_ses_/)
  const websocket = 'connection: upgrade\r\nupgrade: websocket\r\n'
  t.regex(await ask(`GET /api/health HTTP/1.1\r\nhost: x\r\n${websocket}\r\n`), /^HTTP\/1\.1 200 /)
  t.regex(await ask(`GET /ws/agent/a HTTP/1.1\r\nhost: x\r\n${websocket}\r\n`), /^HTTP\/1\.1 401 /)
})

test('a connection that offers an upgrade with each request accumulates no listeners', async (t) => {
  const server = createListener(null).create((_request, response) => response.end('served'))
  trackUnusedConnections(server)
  server.on('upgrade', (request, socket, head) => declineUpgrade(server, request, socket, head))
  const port = await listening(t, server)
  const client = opened(t, port)
  const [accepted] = (await once(server, 'connection')) as [Socket]
  const listeners = () => accepted.eventNames().map((name) => [name, accepted.listenerCount(name)])
  const ask = async () => {
    client.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: h2c\r\n\r\n')
    t.regex(String(await once(client, 'data')), /served/)
  }
  await ask()
  const first = listeners()
  for (let request = 2; request <= 30; request++) await ask()
  t.deepEqual(listeners(), first)
})

test('while the server stops, late requests and logins get a 503 in the envelope; health and ready still answer', async (t) => {
  const server = await startTestServer(t)
  const port = Number(new URL(server.url).port)
  const ends: Record<string, [RegExp, object]> = {
    'POST /api/auth/login': [
      / 503 [\s\S]*retry-after: 5/,
      { code: 503, message: 'The server is starting or shutting down' },
    ],
    'GET /api/openapi.json': [/ 503 /, { code: 503, message: 'The server is starting or shutting down' }],
    'GET /api/hosts': [/ 503 /, { code: 503, message: 'The server is starting or shutting down' }],
    'GET /api/health': [/ 200 /, { code: 200, message: 'OK', data: { status: 'UP' } }],
    'GET /api/ready': [
      / 503 /,
      {
        code: 503,
        message: 'The server does not accept work just now: it is starting or stopping',
        data: { status: 'DOWN', reasons: ['it is starting or stopping'], server: null },
      },
    ],
    'GET /api/ready?drain=true': [
      / 503 /,
      {
        code: 503,
        message: 'The server does not accept work just now: it is starting or stopping',
        data: { status: 'DOWN', reasons: ['it is starting or stopping'], server: null },
      },
    ],
  }
  const begun = await Promise.all(
    Object.keys(ends).map(async (line) => {
      const socket = opened(t, port)
      // A used connection whose next request has begun is not closed as idle.
      socket.write('GET /api/health HTTP/1.1\r\nhost: x\r\n\r\n')
      await once(socket, 'data')
      socket.write(`${line} HTTP/1.1\r\nhost: x\r\n`)
      return socket
    }),
  )
  // An answer on another connection proves that the server has read everything written before.
  await server.api('GET', '/api/hosts')
  const stopped = server.stop()
  for (const [index, [line, [status, envelope]]] of Object.entries(ends).entries()) {
    const socket = begun[index] ?? opened(t, port)
    socket.write('content-length: 0\r\n\r\n')
    const answer = await readAll(socket)
    t.regex(answer, status, line)
    t.like(JSON.parse(answer.split('\r\n\r\n')[1] ?? ''), envelope, line)
  }
  await stopped
})

test('S10 a body without a token may have 16 KiB; large bodies of one caller over its limit get 503 with Retry-After', async (t) => {
  const server = await startTestServer(t)
  const port = Number(new URL(server.url).port)
  const head = (path: string, more: string) =>
    `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${more}\r\n\r\n`
  const ask = (text: string) => {
    const socket = opened(t, port)
    socket.write(text)
    return socket
  }
  t.regex(
    await readAll(ask(head('/api/auth/login', 'content-length: 16385'))),
    /^HTTP\/1\.1 413 [\s\S]*16384 bytes/,
  )
  const chunked = `${head('/api/auth/login', 'transfer-encoding: chunked')}4001\r\n${' '.repeat(0x4001)}\r\n`
  t.regex(await readAll(ask(chunked)), /^HTTP\/1\.1 413 /)

  const own = `authorization: Bearer ${server.token}\r\n`
  const large = head('/api/scripts', `${own}expect: 100-continue\r\ncontent-length: 2097152`)
  const sockets = Array.from({ length: 16 }, () => ask(large))
  await Promise.all(sockets.map((socket) => once(socket, 'data')))
  t.is((await server.api('GET', '/api/health')).status, 200)
  const refused = await readAll(ask(large))
  t.regex(refused, /^HTTP\/1\.1 503 /m)
  t.regex(refused, /retry-after: \d+\r\n/i)
  const unmeasured = `${head('/api/scripts', `${own}transfer-encoding: chunked`)}4001\r\n${' '.repeat(0x4001)}\r\n`
  t.regex(await readAll(ask(unmeasured)), /^HTTP\/1\.1 503 [\s\S]*retry-after: /i)
  t.is((await server.api('POST', '/api/hosts', { hostname: 'web1', ip: '10.0.0.1' })).status, 201)
  const { token } = await server.enroll('web2')
  const foreign = head('/api/agent/metrics', `authorization: Bearer ${token}\r\ncontent-length: 20000`)
  t.regex(await readAll(ask(foreign + ' '.repeat(20_000))), /^HTTP\/1\.1 400 /)

  for (const socket of sockets) socket.destroy()
  const script = { name: 's', type: 'BASH', content: `: ${'x'.repeat(1024 * 1000)}` }
  const body = JSON.stringify(script)
  const roomy = async (): Promise<number> => {
    const { status } = await server.api('POST', '/api/scripts', body)
    return status === 503 ? roomy() : status
  }
  t.is(await roomy(), 201)
})
