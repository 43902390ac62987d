import { once } from 'node:events'
import { createServer, connect as dial, type Server, type Socket } from 'node:net'
import type { ExecutionContext } from 'ava'
import { onSteadyPort } from './steady-port.ts'

/** A wiretap on a server that can cut the connection: frames of a server are plain text on it. */
export interface Tap {
  readonly port: number
  /** Every EXECUTE_SCRIPT as it was on the wire. */
  readonly executions: string[]
  /** Keeps the next EXECUTE_SCRIPT and cuts the connection before it arrives; settles with it. */
  keepNext(): Promise<string>
  open(): Promise<void>
  close(): Promise<void>
}

const begin = '{"type":"EXECUTE_SCRIPT"'

export async function tapServer(t: ExecutionContext, target: () => string): Promise<Tap> {
  const open = new Set<Socket>()
  const executions: string[] = []
  let keep: ((frame: string) => void) | undefined
  let server: Server
  let port = 0

  function relay(agent: Socket): void {
    const upstream = dial(Number(new URL(target()).port), '127.0.0.1')
    const cut = () => {
      agent.destroy()
      upstream.destroy()
    }
    let seen = ''
    for (const socket of [agent, upstream]) {
      open.add(socket)
      socket.on('error', cut)
      socket.on('close', () => {
        open.delete(socket)
        cut()
      })
    }
    agent.pipe(upstream)
    upstream.on('data', (data) => {
      seen += data.toString('utf8')
      const at = seen.indexOf(begin)
      // Small frames, each written at once: a frame that begins in a piece also ends in it.
      const frame = at < 0 ? undefined : seen.slice(at, seen.indexOf('}}', at) + 2)
      seen = ''
      if (frame !== undefined) {
        executions.push(frame)
        const kept = keep
        keep = undefined
        if (kept) {
          cut()
          return kept(frame)
        }
      }
      agent.write(data)
    })
  }

  const tap: Tap = {
    get port() {
      return port
    },
    executions,
    keepNext: () =>
      new Promise((resolve) => {
        keep = resolve
      }),
    async open() {
      const listen = async (at: number) => {
        port = at
        server = createServer(relay)
        server.listen(port, '127.0.0.1')
        await once(server, 'listening')
      }
      await (port === 0 ? onSteadyPort(listen) : listen(port))
    },
    async close() {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      for (const socket of open) socket.destroy()
      await closed
    },
  }
  await tap.open()
  t.teardown(() => tap.close())
  return tap
}
