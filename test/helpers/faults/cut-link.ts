import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { ExecutionContext } from 'ava'

interface Watch {
  text: string
  deliver: boolean
  cut: () => void
}

/** The network between an agent and its server, controlled by a test: a TCP proxy on a port of its own. */
export interface CutLink {
  /** The server's URL for the agent. */
  readonly url: string
  /** Number of open connections. */
  readonly count: number
  /** Ends every connection, on both sides and at any byte; new ones are accepted. */
  cut(): void
  /**
   * Drops packets, as on a dead path: neither side is notified, sent data waits, and new connections get no answer. With
   * `standing` only existing connections are dead.
   */
  freeze(options?: { standing?: boolean }): void
  /** Restores the path, and delivers the data that was on its way. */
  thaw(): void
  /**
   * Cuts at the next piece from the server that holds `text`, and resolves then. `deliver`: the agent still gets that piece. A
   * server's frames are not masked, so that a type like EXECUTE_SCRIPT is readable in them.
   */
  cutAt(text: string, options: { deliver: boolean }): Promise<void>
  close(): Promise<void>
}

interface Pair {
  near: Socket
  far: Socket
  recent: string
  isFrozen: boolean
}

/** A proxy in front of the server at `target`, which may stop and start again on the same port. */
export async function startCutLink(t: Pick<ExecutionContext, 'teardown'>, target: string): Promise<CutLink> {
  const { hostname, port } = new URL(target)
  const pairs = new Set<Pair>()
  let watches: Watch[] = []
  let freezesNew = false

  function drop(pair: Pair): void {
    pairs.delete(pair)
    // Not resetAndDestroy: in a worker thread of Node 20 it leaks a handle, and the worker never ends.
    for (const socket of [pair.near, pair.far]) socket.destroy()
  }
  function cut(): void {
    for (const pair of pairs) drop(pair)
  }
  /** Shows a piece from the server to the watches; returns whether the agent gets it. */
  function pass(pair: Pair, piece: Buffer): boolean {
    if (watches.length === 0) return true
    const seen = pair.recent + piece.toString('latin1')
    pair.recent = seen.slice(-128)
    const found = watches.find(({ text }) => seen.includes(text))
    if (!found) return true
    watches = watches.filter((watch) => watch !== found)
    if (found.deliver) pair.near.write(piece, () => cut())
    else cut()
    found.cut()
    return false
  }

  const proxy = createServer({ noDelay: true }, (near) => {
    const far = connect({ host: hostname, port: Number(port), noDelay: true })
    const pair: Pair = { near, far, recent: '', isFrozen: freezesNew }
    pairs.add(pair)
    near.on('data', (piece) => far.write(piece) || near.pause())
    far.on('data', (piece) => pass(pair, piece) && (near.write(piece) || far.pause()))
    near.on('drain', () => pair.isFrozen || far.resume())
    far.on('drain', () => pair.isFrozen || near.resume())
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      socket.on('end', () => other.end())
      // A reset on one side resets the other; it is not a failure of the test.
      socket.on('error', () => drop(pair))
      // Keep the pair until both sides are closed, so that a half-closed one can still be cut.
      socket.on('close', () => near.destroyed && far.destroyed && pairs.delete(pair))
      if (pair.isFrozen) socket.pause()
    }
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')

  const link: CutLink = {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    get count() {
      return pairs.size
    },
    cut,
    freeze({ standing = false } = {}) {
      freezesNew = !standing
      for (const pair of pairs) {
        pair.isFrozen = true
        for (const socket of [pair.near, pair.far]) socket.pause()
      }
    },
    thaw() {
      freezesNew = false
      for (const pair of pairs) {
        pair.isFrozen = false
        for (const socket of [pair.near, pair.far]) socket.resume()
      }
    },
    cutAt: (text, { deliver }) =>
      new Promise((resolve) => {
        watches.push({ text, deliver, cut: resolve })
      }),
    async close() {
      if (!proxy.listening) return
      cut()
      await new Promise<void>((resolve) => proxy.close(() => resolve()))
    },
  }
  t.teardown(() => link.close())
  return link
}
