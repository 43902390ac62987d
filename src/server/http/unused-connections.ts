import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** The same for a socket and for the TLS over it. */
const peer = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`

/**
 * Connections over which nothing has been asked yet, as browsers and HTTP pools open them in advance. Node counts them
 * as busy, so without this a stopping server would wait for them as long as it waits for requests under way.
 */
export function trackUnusedConnections(server: Server): { close(): void } {
  const unused = new Set<Socket>()
  /** The same socket comes again where an upgrade was declined: it has been used, and is watched already. */
  const known = new WeakSet<Socket>()
  /** Sockets whose TLS handshake is not done. */
  const shaking = new Map<string, Socket>()
  const secure = 'setSecureContext' in server
  const track = (socket: Socket) => {
    if (known.has(socket)) return
    known.add(socket)
    unused.add(socket)
    socket.once('close', () => unused.delete(socket))
  }
  server.on('connection', (socket: Socket) => {
    if (!secure) return track(socket)
    const key = peer(socket)
    shaking.set(key, socket)
    socket.once('close', () => shaking.delete(key))
  })
  server.on('secureConnection', (socket: Socket) => {
    shaking.delete(peer(socket))
    track(socket)
  })
  server.on('request', ({ socket }) => unused.delete(socket))
  server.on('upgrade', ({ socket }) => unused.delete(socket))
  return {
    close() {
      for (const socket of [...unused, ...shaking.values()]) socket.destroy()
    },
  }
}
