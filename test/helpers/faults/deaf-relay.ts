import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { ExecutionContext } from 'ava'

/** The last message of a PostgreSQL client: Terminate, of four bytes. */
const terminate = Buffer.from('X\0\0\0\x04', 'latin1')

/** A TCP proxy in front of PostgreSQL that drops only the ends of connections, as a path that lost its state. */
export async function startDeafRelay(t: Pick<ExecutionContext, 'teardown'>, port: number): Promise<number> {
  const sockets = new Set<Socket>()
  const proxy = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ host: '127.0.0.1', port })
    near.on('data', (piece) => piece.equals(terminate) || far.write(piece))
    far.on('data', (piece) => near.write(piece))
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
    }
    far.on('close', () => near.destroy())
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    proxy.close()
  })
  return (proxy.address() as AddressInfo).port
}
