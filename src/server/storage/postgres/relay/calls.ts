import type { Method } from './messages.ts'
import { wayLost } from './sent-error.ts'

/** Milliseconds for an answer of a server that lives: an agent may take 15 s to open a terminal. */
const longestCall = 30_000

/** What has this server asked others and not heard yet. */
interface Pending {
  readonly peer: number
  readonly timer: NodeJS.Timeout
  resolve(value: unknown): void
  reject(error: Error): void
}

/** Calls of the sites of other servers. */
export class Calls {
  readonly #pending = new Map<number, Pending>()
  #last = 0

  /** `send` sends it under this id. */
  ask(peer: number, method: Method, send: (id: number) => void): Promise<unknown> {
    const id = ++this.#last
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.fail(peer, id, wayLost(`The server of the session did not answer to ${method}`))
      }, longestCall)
      this.#pending.set(id, { peer, timer, resolve, reject })
      send(id)
    })
  }

  answer(peer: number, id: number, value: unknown): void {
    this.#take(peer, id)?.resolve(value)
  }

  fail(peer: number, id: number, error: Error): void {
    this.#take(peer, id)?.reject(error)
  }

  /** Null: all of them are. */
  lost(peer: number | null): void {
    for (const [id, pending] of this.#pending)
      if (peer === null || pending.peer === peer) this.fail(pending.peer, id, wayLost())
  }

  get peers(): number[] {
    return [...this.#pending.values()].map(({ peer }) => peer)
  }

  #take(peer: number, id: number): Pending | undefined {
    const pending = this.#pending.get(id)
    if (pending?.peer !== peer) return undefined
    this.#pending.delete(id)
    clearTimeout(pending.timer)
    return pending
  }
}
