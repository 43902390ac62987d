import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { ExecutionContext } from 'ava'

/** A way through TCP to a server that can be cut, or made to swallow every byte while both ends think that it stands. */
export interface TcpProxy {
  readonly url: string
  /** Connections that have been opened through it so far. */
  readonly opened: number
  /** Resets every connection that stands. */
  cut(): void
  /** What stands passes nothing any more, not even its end; what is new passes, unless `all`. */
  freeze(options?: { all?: boolean }): void
  /** What was held passes again, late and whole, as after a loss of packets. */
  thaw(): void
}

interface Pair {
  near: Socket
  far: Socket
}

/** `target` is asked at every connection, as a server may come back elsewhere. */
export async function tcpProxy(t: ExecutionContext, target: () => string): Promise<TcpProxy> {
  const pairs = new Set<Pair>()
  let frozen = new Set<Pair>()
  let freezesNew = false
  let opened = 0
  const halt = (pair: Pair) => {
    frozen.add(pair)
    for (const [from, to] of [
      [pair.near, pair.far],
      [pair.far, pair.near],
    ] as const) {
      from.unpipe(to)
      from.pause()
    }
  }
  const go = ({ near, far }: Pair) => {
    near.pipe(far)
    far.pipe(near)
  }
  const drop = (pair: Pair) => {
    pairs.delete(pair)
    frozen.delete(pair)
    pair.near.resetAndDestroy()
    pair.far.resetAndDestroy()
  }
  const server = createServer({ noDelay: true }, (near) => {
    opened += 1
    const { hostname, port } = new URL(target())
    const far = connect({ host: hostname, port: Number(port), noDelay: true })
    const pair = { near, far }
    pairs.add(pair)
    for (const socket of [near, far]) {
      socket.on('error', () => drop(pair))
      socket.on('close', () => {
        if (near.destroyed && far.destroyed) pairs.delete(pair)
      })
    }
    if (freezesNew) halt(pair)
    else go(pair)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => {
    for (const pair of pairs) drop(pair)
  }
  t.teardown(() => {
    server.close()
    cut()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get opened() {
      return opened
    },
    cut,
    freeze({ all = false } = {}) {
      freezesNew = all
      for (const pair of pairs) halt(pair)
    },
    thaw() {
      freezesNew = false
      const held = frozen
      frozen = new Set()
      for (const pair of held) {
        if (pair.near.destroyed || pair.far.destroyed) drop(pair)
        else go(pair)
      }
    },
  }
}
