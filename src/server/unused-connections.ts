import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Connections over which nothing has been asked yet, as browsers and HTTP pools open them in advance. Node counts them
 * as busy, so without this a stopping server would wait for them as long as it waits for requests under way.
 */
export function trackUnusedConnections(server: Server): { close(): void } {
  const unused = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    unused.add(socket)
    socket.once('close', () => unused.delete(socket))
  })
  server.on('request', ({ socket }) => unused.delete(socket))
  server.on('upgrade', ({ socket }) => unused.delete(socket))
  return {
    close() {
      for (const socket of unused) socket.destroy()
    },
  }
}
