/**
 * How far an agent's clock is ahead of ours, by the last two heartbeats. What the network and this server take makes it
 * look behind, never ahead: so the larger of both is nearer to the truth, and one late heartbeat tells nothing wrong.
 */
export class ClockComparison {
  /** Milliseconds; NaN where the time can't be read, null where none was said. */
  #last: number | null = null
  #before: number | null = null

  /** `text` is ISO 8601 by the agent's clock, `at` milliseconds since 1970 by ours. */
  note(text: string | undefined, at: number): void {
    this.#before = this.#last
    this.#last = text === undefined ? null : Date.parse(text) - at
  }

  /** About; negative where the agent's clock is behind, null where it says no time that can be read. */
  offsetSeconds(): number | null {
    // One that says no time any more has none to be judged by.
    if (this.#last === null) return null
    const offsets = [this.#last, this.#before].filter(
      (offset) => offset !== null && !Number.isNaN(offset),
    ) as number[]
    if (offsets.length === 0) return null
    return Math.round(Math.max(...offsets) / 100) / 10
  }
}
