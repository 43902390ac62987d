import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { WebSocket } from 'ws'
import { Screen } from '../terminal/screen.ts'

const file = (name: string) => fileURLToPath(new URL(`${name}.js`, import.meta.url))

/** A program on a terminal, with only a relay of frames and node-pty between it and its client. */
export async function openBareTerminal(program: readonly string[]): Promise<Screen> {
  const relay = fork(file('terminal-relay'))
  const [port] = (await once(relay, 'message')) as [number]
  const url = `ws://127.0.0.1:${port}`
  const linked = once(relay, 'message')
  const agent = fork(file('terminal-agent'), [`${url}/agent`, ...program])
  await linked
  const socket = new WebSocket(url, { perMessageDeflate: false })
  await once(socket, 'open')
  let frames = 0
  const screen = new Screen({
    type(data) {
      const payload = { sessionId: 'bare', data }
      const timestamp = new Date().toISOString()
      socket.send(JSON.stringify({ type: 'TERMINAL_INPUT', id: `c${frames++}`, timestamp, payload }))
    },
    async close() {
      const gone = [once(relay, 'exit'), once(agent, 'exit')]
      socket.terminate()
      agent.disconnect()
      relay.disconnect()
      await Promise.all(gone)
    },
  })
  socket.on('message', (frame: Buffer) => {
    const { payload } = JSON.parse(frame.toString()) as { payload: { data: string } }
    screen.show(payload.data)
  })
  return screen
}
