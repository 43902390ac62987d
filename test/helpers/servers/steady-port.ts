import { once } from 'node:events'
import { createServer } from 'node:net'

const lowest = 10_240
/** Below what systems give to connections and to listeners that ask for any port (Linux: from 32768 on). */
const highest = 32_767

/**
 * A free port that stays free while its server is away: on one that the system gave out, a connection of another test may
 * be sitting by the time the server comes back.
 */
export async function steadyPort(): Promise<number> {
  for (;;) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest + 1))
    if (await isFree(port)) return port
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
