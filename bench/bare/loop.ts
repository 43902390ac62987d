import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { type WebSocket, WebSocketServer } from 'ws'

/** A bare `ws` server and bare agents: `run` sends a script to all and waits for every response. */
export interface BareLoop {
  /** Milliseconds from the first frame to the last response. */
  run(script: string): Promise<number>
  stop(): Promise<void>
}

/** Each agent is a process, unless `perProcess` of them share one. */
export async function startBareLoop(agents: number, perProcess = 1): Promise<BareLoop> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const sockets: WebSocket[] = []
  const all = new Promise<void>((resolve) => {
    server.on('connection', (socket) => {
      sockets.push(socket)
      if (sockets.length === agents) resolve()
    })
  })
  const program = fileURLToPath(new URL('agent.js', import.meta.url))
  const children: ChildProcess[] = []
  for (let agent = 0; agent < agents; agent += perProcess)
    children.push(
      spawn(process.execPath, [program, `ws://127.0.0.1:${port}`, String(perProcess)], { stdio: 'ignore' }),
    )
  await all
  return {
    async run(script) {
      const start = performance.now()
      const answers = sockets.map((socket) => once(socket, 'message'))
      const frame = JSON.stringify({ script })
      for (const socket of sockets) socket.send(frame)
      await Promise.all(answers)
      return performance.now() - start
    },
    async stop() {
      for (const socket of sockets) socket.terminate()
      server.close()
      await Promise.all(children.map((child) => ended(child)))
    },
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}
