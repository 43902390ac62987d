/** A window, milliseconds, and the lines that one source may write in it. */
const window = 60_000
const mostLines = 10
/** Sources told apart in one window; those beyond share one budget. */
const mostSources = 10_000
const others = ''

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
    if (now - this.#opened >= window) {
      this.#opened = now
      this.#spent.clear()
    }
    const name = this.#spent.has(source) || this.#spent.size < mostSources ? source : others
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
