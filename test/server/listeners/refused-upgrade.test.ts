import { once } from 'node:events'
import { connect } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

/** Asks for a WebSocket without a token that is good, and keeps its side open whatever comes. */
async function refused(t: ExecutionContext, { url }: TestServer, path: string) {
  const { port, hostname } = new URL(url)
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
  t.teardown(() => socket.destroy())
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  const lines = [
    `GET ${path} HTTP/1.1`,
    'host: rsm',
    'connection: upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
    'authorization: Bearer rsm_agt_none',
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  const [answer] = await once(socket, 'data')
  t.regex(String(answer), /^HTTP\/1\.1 401 /)
  return socket
}

const paths = ['/ws/agent/agent-1', '/ws/terminal/session-1']

test('S10 who was refused at a WebSocket of agents or terminals and does not close holds no socket of the server', async (t) => {
  const server = await startTestServer(t)
  const sockets = await Promise.all(paths.map((path) => refused(t, server, path)))
  // What is written into a connection that the other side has closed comes back as a reset.
  await until('the server has closed both', () => {
    for (const socket of sockets) socket.write('.')
    return sockets.every((socket) => socket.destroyed)
  })
  t.pass()
})

test('a server stops though who was refused at a WebSocket does not close', async (t) => {
  const server = await startTestServer(t)
  const sockets = await Promise.all(paths.map((path) => refused(t, server, path)))
  await server.stop()
  for (const socket of sockets) t.false(socket.destroyed)
})
