import { after } from '../net/backoff.ts'

/** Time as the agent sees it; tests put their own in its place. */
export interface Clock {
  /** Milliseconds since 1970 by this machine's clock, which may step. */
  now(): number
  /** Milliseconds that never go back. */
  monotonic(): number
  /** Calls `run` once after `delay` milliseconds; the answer cancels it. */
  after(delay: number, run: () => void): () => void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after,
}

/** The server's clock as known from its answers, carried on by the monotonic one (contract §6). */
export class ServerTime {
  readonly #clock: Clock
  #server: number | null = null
  #heardAt = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** `serverTime` is ISO 8601; `askedAt` the monotonic time at which the question left. Malformed text is ignored. */
  observe(serverTime: string | undefined, askedAt: number): void {
    const at = Date.parse(serverTime ?? '')
    if (Number.isNaN(at)) return
    const heardAt = this.#clock.monotonic()
    this.#server = at + (heardAt - askedAt) / 2
    this.#heardAt = heardAt
  }

  /** Milliseconds by which this machine's clock is ahead of the server's; null until the server has been heard. */
  offset(): number | null {
    return this.#server === null ? null : this.#clock.now() - this.now()
  }

  /** Milliseconds since 1970; this machine's own clock until the server has been heard. */
  now(): number {
    if (this.#server === null) return this.#clock.now()
    return this.#server + (this.#clock.monotonic() - this.#heardAt)
  }
}
