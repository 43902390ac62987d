/** Milliseconds without an event after which the next one begins another burst. */
const quiet = 5000

/** Tells where events begin that come thick and fast: those are told of once. */
export class Burst {
  #last = Number.NEGATIVE_INFINITY

  /** Whether the event at `now` (monotonic milliseconds) is the first of its burst. */
  begins(now: number): boolean {
    const isFirst = now - this.#last > quiet
    this.#last = now
    return isFirst
  }
}
