const firstDelay = 5_000
const longestDelay = 300_000
/** The share of a delay that chance may take off, so that a fleet does not come back in step. */
const jitter = 0.25
const quickest = 200
const quickSpread = 800

/** Delays of retries in milliseconds: exponential from 5 s to 5 min, with jitter (seed "Agent behaviour"). */
export class Backoff {
  readonly #random: () => number
  #failures = 0

  constructor(random: () => number = Math.random) {
    this.#random = random
  }

  next(): number {
    const base = Math.min(longestDelay, firstDelay * 2 ** Math.min(this.#failures, 10))
    this.#failures += 1
    return Math.round(base * (1 - jitter * this.#random()))
  }

  /**
   * The one quick retry after a link that stood has dropped: the server very likely just restarted. The failures after
   * it count from 5 s as ever.
   */
  quick(): number {
    return Math.round(quickest + quickSpread * this.#random())
  }

  reset(): void {
    this.#failures = 0
  }
}

/** Milliseconds between attempts of an agent whose token was revoked: only a person can mend that. */
export const revokedDelay = longestDelay
