/**
 * How far an agent's clock is ahead of ours, by the last two heartbeats. What the network and this server take makes it
 * look behind, never ahead: so the larger of both is nearer to the truth, and one late heartbeat tells nothing wrong.
 * Times are parsed only when somebody asks: heartbeats come by the thousand.
 */
export class ClockComparison {
  #last: { text: string; at: number } | null = null
  #before: { text: string; at: number } | null = null

  /** `text` is ISO 8601 by the agent's clock, `at` milliseconds since 1970 by ours. */
  note(text: string | undefined, at: number): void {
    this.#before = this.#last
    this.#last = text === undefined ? null : { text, at }
  }

  /** About; negative where the agent's clock is behind, null where it says no time that can be read. */
  offsetSeconds(): number | null {
    const offsets = [this.#last, this.#before].flatMap((each) => {
      const offset = each === null ? Number.NaN : Date.parse(each.text) - each.at
      return Number.isNaN(offset) ? [] : [offset]
    })
    // One that says no time any more has none to be judged by.
    if (this.#last === null || offsets.length === 0) return null
    return Math.round(Math.max(...offsets) / 100) / 10
  }
}
