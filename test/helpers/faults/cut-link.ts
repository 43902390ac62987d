import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { ExecutionContext } from 'ava'

interface Watch {
  text: string
  deliver: boolean
  cut: () => void
}

/** The network between an agent and its server, in the hands of a test: a TCP proxy of its own port. */
export interface CutLink {
  /** What the agent is to be given as the server's URL. */
  readonly url: string
  /** Connections that stand. */
  readonly count: number
  /** Ends every connection, on both sides and in the middle of whatever it carries; new ones are let through. */
  cut(): void
  /**
   * Packets vanish, as on a dead path: nobody is told, whatever is sent waits, new connections get no answer; with
   * `standing` only the connections that stand are dead.
   */
  freeze(options?: { standing?: boolean }): void
  /** The path is back, and what was on its way with it. */
  thaw(): void
  /**
   * Cuts at the next piece of what the server says that holds `text`, and resolves then. `deliver`: the agent still gets
   * that piece. Frames of a server are not masked, so a type like EXECUTE_SCRIPT stands in them as it is.
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

/** A proxy before the server at `target`, which may be down, and back later on the same port. */
export async function startCutLink(t: Pick<ExecutionContext, 'teardown'>, target: string): Promise<CutLink> {
  const { hostname, port } = new URL(target)
  const pairs = new Set<Pair>()
  let watches: Watch[] = []
  let freezesNew = false

  function drop(pair: Pair): void {
    pairs.delete(pair)
    // Not resetAndDestroy: in a worker thread of Node 20 it leaves a handle behind, and the worker never ends.
    for (const socket of [pair.near, pair.far]) socket.destroy()
  }
  function cut(): void {
    for (const pair of pairs) drop(pair)
  }
  /** What the watches say of a piece from the server: whether the agent gets it. */
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
      // A reset on one side is one on the other; it is no fault of the test.
      socket.on('error', () => drop(pair))
      // One side that has ended is still to be cut, and to be closed, as long as the other has not.
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
