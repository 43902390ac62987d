/** Keys that are remembered; those whose allowance is whole again are forgotten beyond it. */
const mostAllowances = 10_000

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
    if (this.#wholeAt.size > mostAllowances) this.#forget(now)
    return Math.max(0, wholeAt - now - this.#burst * this.#period)
  }

  #forget(now: number): void {
    for (const [key, wholeAt] of this.#wholeAt) if (wholeAt <= now) this.#wholeAt.delete(key)
  }
}

/** Milliseconds without an event after which the next one begins another burst. */
const quiet = 5000
/** Bursts at once that are told apart; an event beyond them begins none. */
const mostBursts = 8

/** Finds the first event of a burst, so that a burst is reported once. */
export class Burst {
  /** When each was last heard. */
  readonly #heard = new Map<string, number>()

  /** Whether the event at `now` (monotonic milliseconds) is the first of its burst; `which` names its kind. */
  begins(now: number, which = ''): boolean {
    for (const [each, at] of this.#heard) if (now - at > quiet) this.#heard.delete(each)
    const isFirst = !this.#heard.has(which)
    if (isFirst && this.#heard.size >= mostBursts) return false
    this.#heard.set(which, now)
    return isFirst
  }
}

/** A window, milliseconds, and the lines that one source may write in it. */
const lineWindow = 60_000
const mostLines = 10
/** Sources told apart in one window; those beyond share one budget. */
const mostSources = 10_000
const sharedSource = ''

/** Bounds what others can make us write into a log by sending the same fault again and again. */
export class LineBudget {
  #opened = Number.NEGATIVE_INFINITY
  readonly #spent = new Map<string, number>()
  #leftOut = 0

  /**
   * Whether `source` may write one more line at `now` (monotonic milliseconds); then how many lines of all sources
   * were left out since the last one that was written, else null.
   */
  take(source: string, now: number): number | null {
    if (now - this.#opened >= lineWindow) {
      this.#opened = now
      this.#spent.clear()
    }
    const name = this.#spent.has(source) || this.#spent.size < mostSources ? source : sharedSource
    const spent = this.#spent.get(name) ?? 0
    if (spent >= mostLines) {
      this.#leftOut += 1
      return null
    }
    this.#spent.set(name, spent + 1)
    const leftOut = this.#leftOut
    this.#leftOut = 0
    return leftOut
  }
}
