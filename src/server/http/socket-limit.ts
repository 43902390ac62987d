import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/**
 * At most `limit` open sockets from one address (S10): further ones are closed unread, and the descriptors that they would take
 * stay free for others.
 */
export function limitSockets(
  server: Pick<Server, 'prependListener'>,
  limit: number,
  exempt: (address: string) => boolean,
): void {
  const open = new Map<string, number>()
  const counted = new WeakSet<Socket>()
  server.prependListener('connection', (socket: Socket) => {
    const address = socket.remoteAddress
    // The same socket comes again where an upgrade was declined.
    if (address === undefined || exempt(address) || counted.has(socket)) return
    const before = open.get(address) ?? 0
    if (before >= limit) {
      socket.destroy()
      return
    }
    counted.add(socket)
    open.set(address, before + 1)
    socket.once('close', () => {
      const left = (open.get(address) ?? 1) - 1
      if (left === 0) open.delete(address)
      else open.set(address, left)
    })
  })
}
