import { once } from 'node:events'
import { createServer } from 'node:net'

const lowest = 10_240
/** Below the ephemeral ports, which systems assign to connections and to listeners on any port (Linux: from 32768). */
const highest = 32_767

/**
 * Starts a listener on a free port that stays free between a stop and the next start: a connection of another test may take an
 * ephemeral port meanwhile. Tries another port if this one is taken.
 */
export async function onSteadyPort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (;;) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest + 1))
    if (!(await isFree(port))) continue
    try {
      return await start(port)
    } catch (error) {
      if (await isFree(port)) throw error
    }
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
