/** Keys that are remembered; those whose allowance is whole again are forgotten beyond it. */
const remembered = 10_000

/** How often each of many may do a thing: so many times at once, and once more for every period that has passed. */
export class Allowance {
  readonly #burst: number
  readonly #period: number
  /** When the allowance of a key is whole again. */
  readonly #wholeAt = new Map<string | number, number>()

  /** `period` in milliseconds. */
  constructor(burst: number, period: number) {
    this.#burst = burst
    this.#period = period
  }

  /** Takes one at `now` (monotonic milliseconds): 0, or the milliseconds after which there is one again. */
  take(key: string | number, now: number): number {
    const wait = this.wait(key, now)
    if (wait === 0) this.spend(key, 1, now)
    return wait
  }

  /** The same without taking it. */
  wait(key: string | number, now: number): number {
    const used = Math.max(this.#wholeAt.get(key) ?? now, now) - now
    return Math.max(0, used - (this.#burst - 1) * this.#period)
  }

  /** Takes `count` at `now`, even more than there are: 0, or the milliseconds for which some are owed. */
  spend(key: string | number, count: number, now: number): number {
    const wholeAt = Math.max(this.#wholeAt.get(key) ?? now, now) + count * this.#period
    this.#wholeAt.set(key, wholeAt)
    if (this.#wholeAt.size > remembered) this.#forget(now)
    return Math.max(0, wholeAt - now - this.#burst * this.#period)
  }

  #forget(now: number): void {
    for (const [key, wholeAt] of this.#wholeAt) if (wholeAt <= now) this.#wholeAt.delete(key)
  }
}
