import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ended } from '../fleet/server.ts'
import type { RegisteredAgent } from '../rest/register.ts'

/** `from`: the agents' local address. */
export interface HerdOrder {
  url: string
  from: string
  agents: readonly RegisteredAgent[]
}

/** Agents that speak the protocol, from two addresses, half from each: one address has too few ports for many. */
export interface Herd {
  /** Number of open links. */
  readonly open: number
  /** Resolves when this number of links is open. */
  opened(count: number): Promise<void>
  stop(): Promise<void>
}

const addresses = ['127.0.0.1', '127.0.0.2']
const program = fileURLToPath(new URL('agents.js', import.meta.url))

export function startHerd(url: string, agents: readonly RegisteredAgent[]): Herd {
  const half = Math.ceil(agents.length / addresses.length)
  let tell = () => {}
  const counts = addresses.map(() => 0)
  const children = addresses.map((from, at): ChildProcess => {
    const child = fork(program)
    child.on('message', (open: number) => {
      counts[at] = open
      tell()
    })
    child.send({ url, from, agents: agents.slice(at * half, (at + 1) * half) } satisfies HerdOrder)
    return child
  })
  const open = () => counts.reduce((sum, count) => sum + count, 0)
  return {
    get open() {
      return open()
    },
    opened: (count) =>
      new Promise((resolve) => {
        tell = () => {
          if (open() === count) resolve()
        }
        tell()
      }),
    async stop() {
      for (const child of children) child.kill('SIGKILL')
      await Promise.all(children.map((child) => ended(child)))
    },
  }
}
