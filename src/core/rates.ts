/** Most keys tracked; beyond it, keys with a full allowance are dropped. */
const mostAllowances = 10_000

/** Rate limit per key: a burst, refilled by one per period. */
export class Allowance {
  readonly #burst: number
  readonly #period: number
  readonly #wholeAt = new Map<string | number, number>()

  /** `period` in milliseconds. */
  constructor(burst: number, period: number) {
    this.#burst = burst
    this.#period = period
  }

  /** Takes one at `now` (monotonic milliseconds): returns 0, or the milliseconds until one is available. */
  take(key: string | number, now: number): number {
    const wait = this.wait(key, now)
    if (wait === 0) this.spend(key, 1, now)
    return wait
  }

  /** Like `take`, but takes none. */
  wait(key: string | number, now: number): number {
    const used = Math.max(this.#wholeAt.get(key) ?? now, now) - now
    return Math.max(0, used - (this.#burst - 1) * this.#period)
  }

  /** Takes `count` at `now`, even beyond the allowance: returns 0, or the milliseconds until the debt is paid off. */
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
/** Most kinds of bursts tracked at once; an event of a further kind begins none. */
const mostBursts = 8

/** Finds the first event of a burst, so that a burst is reported once. */
export class Burst {
  readonly #heard = new Map<string, number>()

  /** Whether the event at `now` (monotonic milliseconds) is the first of its burst; `which` is its kind. */
  begins(now: number, which = ''): boolean {
    for (const [each, at] of this.#heard) if (now - at > quiet) this.#heard.delete(each)
    const isFirst = !this.#heard.has(which)
    if (isFirst && this.#heard.size >= mostBursts) return false
    this.#heard.set(which, now)
    return isFirst
  }
}

/** Window in milliseconds, and the lines that one source may write in it. */
const lineWindow = 60_000
const mostLines = 10
/** Most sources tracked in one window; further ones share one budget. */
const mostSources = 10_000
const sharedSource = ''

/** Limits log lines per source, so that a peer that repeats a fault cannot flood the log. */
export class LineBudget {
  #opened = Number.NEGATIVE_INFINITY
  readonly #spent = new Map<string, number>()
  #leftOut = 0

  /**
   * Number of lines of all sources suppressed since the last one written, if `source` may write another at `now`
   * (monotonic milliseconds); null if it may not.
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
