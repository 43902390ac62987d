/** Minimal sender of a file: JSON frames of 64 KiB over a WebSocket, without acknowledgements. */
import { openSync, readSync } from 'node:fs'
import { WebSocket } from 'ws'

const [url = '', path = ''] = process.argv.slice(2)
const buffer = Buffer.alloc(64 * 1024)
const mostBuffered = 1024 * 1024
const socket = new WebSocket(url, { perMessageDeflate: false })

async function send(): Promise<void> {
  const file = openSync(path, 'r')
  for (let bytes = readSync(file, buffer); bytes > 0; bytes = readSync(file, buffer)) {
    const frame = JSON.stringify({ data: buffer.toString('utf8', 0, bytes) })
    const sent = new Promise((resolve) => socket.send(frame, resolve))
    if (socket.bufferedAmount > mostBuffered) await sent
  }
  socket.send('{}')
}

process.on('message', () => void send())
process.on('disconnect', () => process.exit())
socket.on('open', () => process.send?.('open'))
