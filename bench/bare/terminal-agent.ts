/** Minimal terminal behind a WebSocket: node-pty without changes, JSON frames, no acknowledgements. */
import { spawn } from 'node-pty'
import { WebSocket } from 'ws'

const [url = '', program = '', ...args] = process.argv.slice(2)
const pty = spawn(program, args, { cols: 80, rows: 24, name: 'xterm-256color' })
const socket = new WebSocket(url, { perMessageDeflate: false })
let sequence = 0

socket.on('message', (frame: Buffer) => {
  const { payload } = JSON.parse(frame.toString()) as { payload: { data: string } }
  pty.write(payload.data)
})
socket.on('open', () =>
  pty.onData((data) => {
    const payload = { sessionId: 'bare', data, sequence }
    const frame = {
      type: 'TERMINAL_OUTPUT',
      id: `a${sequence++}`,
      timestamp: new Date().toISOString(),
      payload,
    }
    socket.send(JSON.stringify(frame))
  }),
)
process.on('disconnect', () => {
  pty.kill('SIGKILL')
  process.exit()
})
