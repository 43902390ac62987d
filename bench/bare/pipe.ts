import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** A file, an agent, a server and another file, connected only by JSON frames over a WebSocket. */
export interface BarePipe {
  /** Milliseconds until the last byte is written. */
  run(): Promise<number>
  stop(): void
}

const program = (name: string) => fileURLToPath(new URL(`${name}.js`, import.meta.url))

export async function startBarePipe(from: string, to: string): Promise<BarePipe> {
  const server = fork(program('pipe-server'), [to])
  const [port] = (await once(server, 'message')) as [number]
  const agent = fork(program('pipe-agent'), [`ws://127.0.0.1:${port}`, from])
  await once(agent, 'message')
  return {
    async run() {
      const start = performance.now()
      const stored = once(server, 'message')
      agent.send('go')
      await stored
      return performance.now() - start
    },
    stop() {
      agent.disconnect()
      server.disconnect()
    },
  }
}
