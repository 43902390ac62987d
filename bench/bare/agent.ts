/** The least that an agent can be: a WebSocket that spawns what it is told and answers the exit code. */
import { spawn } from 'node:child_process'
import { WebSocket } from 'ws'

const socket = new WebSocket(process.argv[2] ?? '')
socket.on('message', (data: Buffer) => {
  const { script } = JSON.parse(data.toString()) as { script: string }
  const child = spawn('bash', ['-c', script], { stdio: ['ignore', 'pipe', 'pipe'] })
  child.on('close', (code) => socket.send(JSON.stringify({ code })))
})
socket.on('close', () => process.exit(0))
