/**
 * Minimal agent: a WebSocket client that spawns each script and sends its exit code. The second argument is the number of
 * agents in this process.
 */
import { spawn } from 'node:child_process'
import { WebSocket } from 'ws'

const [url = '', sockets = '1'] = process.argv.slice(2)
for (let left = Number(sockets); left > 0; left--) {
  const socket = new WebSocket(url)
  socket.on('message', (data: Buffer) => {
    const { script } = JSON.parse(data.toString()) as { script: string }
    const child = spawn('bash', ['-c', script], { stdio: ['ignore', 'pipe', 'pipe'] })
    child.on('close', (code) => socket.send(JSON.stringify({ code })))
  })
  socket.on('close', () => process.exit(0))
}
