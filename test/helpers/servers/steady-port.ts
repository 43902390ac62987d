import { once } from 'node:events'
import { createServer } from 'node:net'

const lowest = 10_240
/** Below what systems give to connections and to listeners that ask for any port (Linux: from 32768 on). */
const highest = 32_767

/**
 * Starts what listens on a free port that stays free while it is away: on one that the system gave out, a connection of
 * another test may be sitting by the time it comes back. Another port is tried where somebody else was faster.
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
