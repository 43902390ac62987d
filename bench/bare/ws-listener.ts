/**
 * A bare `ws` server that reads all frames and responds to every HTTP request with `{}`; its argument is the port, 0 for a
 * free one. Prints the port when ready.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'

const server = createServer((request, response) => {
  request.resume().on('end', () => response.end('{}'))
})
const sockets = new WebSocketServer({ server, perMessageDeflate: false })
sockets.on('connection', (socket) => socket.on('message', () => {}))
server.listen({ host: '127.0.0.1', port: Number(process.argv[2]), backlog: 8192 }, () =>
  console.log((server.address() as AddressInfo).port),
)
