/** Minimal storage of output: appends the text of JSON frames from a WebSocket to a file. */
import { openSync, writeSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'

const file = openSync(process.argv[2] ?? '', 'w')
const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false })
server.on('connection', (socket) => {
  socket.on('message', (frame: Buffer) => {
    const { data } = JSON.parse(frame.toString()) as { data?: string }
    if (data === undefined) process.send?.('stored')
    else writeSync(file, data)
  })
})
server.on('listening', () => process.send?.((server.address() as AddressInfo).port))
process.on('disconnect', () => process.exit())
