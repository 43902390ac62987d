import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import type { WebSocketDependencies } from '../../../src/server/listeners/dependencies.ts'
import { createWebSockets } from '../../../src/server/listeners/web-sockets.ts'
import { createLocalFacts } from '../../../src/server/storage/local-facts.ts'
import { createLocalHints } from '../../../src/server/storage/local-hints.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

/** Requests a WebSocket with an invalid token, and keeps its own side open whatever the answer. */
async function refused(t: ExecutionContext, { url }: Pick<TestServer, 'url'>, path: string) {
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

test('S10 a client refused at a WebSocket that does not close keeps no socket of the server open', async (t) => {
  const server = await startTestServer(t)
  const sockets = await Promise.all(paths.map((path) => refused(t, server, path)))
  // Writing to a connection that the other side has closed is answered with a reset.
  await until('the server has closed both', () => {
    for (const socket of sockets) socket.write('.')
    return sockets.every((socket) => socket.destroyed)
  })
  t.pass()
})

test('a server can stop although a refused WebSocket client does not close', async (t) => {
  const server = await startTestServer(t)
  const sockets = await Promise.all(paths.map((path) => refused(t, server, path)))
  await server.stop()
  for (const socket of sockets) t.false(socket.destroyed)
})

test('a refused WebSocket of another server is audited', async (t) => {
  const noted: unknown[] = []
  const webSockets = createWebSockets({
    relay: {
      accept() {
        throw new RsmError('unauthenticated', 'not a server of this store')
      },
      close: () => undefined,
    },
    hints: createLocalHints(),
    facts: createLocalFacts(),
    wsIdleTimeout: 300,
    refused: async ({ url }: { url?: string }, caller: unknown, error: unknown) =>
      void noted.push([url, caller, (error as Error).message]),
  } as unknown as WebSocketDependencies)
  const server = createServer()
  webSockets.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    webSockets.close()
    server.close()
  })
  await refused(t, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }, '/ws/server')
  t.deepEqual(noted, [['/ws/server', undefined, 'not a server of this store']])
})
