/** Minimal relay between client and host: forwards the frames of each WebSocket to the other unchanged. */
import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'

const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false })
let agent: WebSocket | undefined
let client: WebSocket | undefined
server.on('connection', (socket, request) => {
  const isAgent = request.url === '/agent'
  if (isAgent) agent = socket
  else client = socket
  socket.on('message', (frame: Buffer) => (isAgent ? client : agent)?.send(frame, { binary: false }))
  if (isAgent) process.send?.('agent')
})
server.on('listening', () => process.send?.((server.address() as AddressInfo).port))
process.on('disconnect', () => process.exit())
