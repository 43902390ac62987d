/** Milliseconds without an event after which the next one begins another burst. */
const quiet = 5000
/** Bursts at once that are told apart; an event beyond them begins none. */
const most = 8

/** Finds the first event of a burst, so that a burst is reported once. */
export class Burst {
  /** When each was last heard. */
  readonly #heard = new Map<string, number>()

  /** Whether the event at `now` (monotonic milliseconds) is the first of its burst; `which` names its kind. */
  begins(now: number, which = ''): boolean {
    for (const [each, at] of this.#heard) if (now - at > quiet) this.#heard.delete(each)
    const isFirst = !this.#heard.has(which)
    if (isFirst && this.#heard.size >= most) return false
    this.#heard.set(which, now)
    return isFirst
  }
}
