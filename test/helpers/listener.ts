import { EventEmitter, once } from 'node:events'
import { patience } from './patience.ts'

/** Characters of the received messages that a failure shows. */
const mostShown = 2_000

/** A receiver of messages over a socket: each one is kept until the test asks for it. */
export abstract class Listener<M extends { type: string; payload: unknown }> {
  /** Every message, in order. */
  readonly heard: M[] = []
  readonly #unread: M[] = []
  readonly #arrivals = new EventEmitter().setMaxListeners(100)

  protected hear(message: M): void {
    this.heard.push(message)
    this.#unread.push(message)
    this.#arrivals.emit('message')
  }

  /** The next message of this type that was not answered before; messages of other types stay. */
  async next<T extends M['type']>(
    type: T,
    fits: (payload: Extract<M, { type: T }>['payload']) => boolean = () => true,
  ): Promise<Extract<M, { type: T }>['payload']> {
    let found: M | undefined
    const take = () => {
      const at = this.#unread.findIndex((message) => message.type === type && fits(message.payload))
      // Taken at once, because another call may wait for the same message.
      if (at >= 0) [found] = this.#unread.splice(at, 1)
      return at >= 0
    }
    await this.untilHeard(take, () => {
      const got = this.heard.map((message) => `${message.type} ${JSON.stringify(message.payload)}`)
      return `no ${type} within ${patience} ms; heard: ${got.join(', ').slice(0, mostShown) || 'nothing'}`
    })
    return (found as Extract<M, { type: T }>).payload
  }

  /** Checks a condition after each arrival until it holds; rejects with `complaint`. */
  protected async untilHeard(holds: () => boolean, complaint: () => string): Promise<void> {
    const signal = AbortSignal.timeout(patience)
    while (!holds())
      await once(this.#arrivals, 'message', { signal }).catch(() => {
        throw new Error(complaint())
      })
  }
}
