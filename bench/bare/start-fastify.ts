import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** Bare Fastify in a process of its own. */
export interface BareFastify {
  port: number
  /** Sets the hosts that it lists. */
  serve(hosts: readonly unknown[]): Promise<void>
  stop(): void
}

export async function startBareFastify(): Promise<BareFastify> {
  const child = fork(fileURLToPath(new URL('fastify.js', import.meta.url)))
  const [port] = (await once(child, 'message')) as [number]
  return {
    port,
    async serve(hosts) {
      const ready = once(child, 'message')
      child.send([...hosts])
      await ready
    },
    stop: () => child.disconnect(),
  }
}
