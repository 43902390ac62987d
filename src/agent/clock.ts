import { after } from '../net/backoff.ts'

/** Clock of the agent; tests substitute their own. */
export interface Clock {
  /** Milliseconds since 1970 by this machine's clock, which may step. */
  now(): number
  /** Milliseconds that never go back. */
  monotonic(): number
  /** Calls `run` once after `delay` milliseconds; the result cancels it. */
  after(delay: number, run: () => void): () => void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after,
}

/** The server's clock as last received, extrapolated with the monotonic clock (contract §6). */
export class ServerTime {
  readonly #clock: Clock
  #server: number | null = null
  #heardAt = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** `serverTime` is ISO 8601; `askedAt` the monotonic time of the request. Malformed text is ignored. */
  observe(serverTime: string | undefined, askedAt: number): void {
    const at = Date.parse(serverTime ?? '')
    if (Number.isNaN(at)) return
    const heardAt = this.#clock.monotonic()
    this.#server = at + (heardAt - askedAt) / 2
    this.#heardAt = heardAt
  }

  /** Milliseconds by which this machine's clock is ahead of the server's; null until the server answered. */
  offset(): number | null {
    return this.#server === null ? null : this.#clock.now() - this.now()
  }

  /** Milliseconds since 1970; this machine's clock until the server answered. */
  now(): number {
    if (this.#server === null) return this.#clock.now()
    return this.#server + (this.#clock.monotonic() - this.#heardAt)
  }
}
