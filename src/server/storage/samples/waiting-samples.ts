import type { Metrics } from '../../../core/hosts/host.ts'
import type { Clock } from '../../../disk/clock.ts'
import { keptFor } from '../ports/presence.ts'
import { encodeSample } from './sample-line.ts'

export interface WaitingSample {
  readonly hostId: number
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly line: string
}

/** A clock that runs ahead by less than this is taken at its word. */
const tolerance = 60_000

/** Samples that are not written yet, oldest first; the oldest are dropped beyond a bound. */
export class WaitingSamples {
  /** Since this was last set to 0. */
  dropped = 0
  #characters = 0
  readonly #waiting = new Set<WaitingSample>()
  readonly #clock: Clock
  readonly #most: number

  /** `most`: characters of all that wait. */
  constructor(clock: Clock, most: number) {
    this.#clock = clock
    this.#most = most
  }

  get size(): number {
    return this.#waiting.size
  }

  [Symbol.iterator](): Iterator<WaitingSample> {
    return this.#waiting.values()
  }

  /** At the time that its agent says, or now where that can't be believed (contract §3). */
  add(hostId: number, metrics: Metrics): void {
    const now = this.#clock.now()
    const reported = Date.parse(metrics.timestamp)
    const at = reported <= now + tolerance && reported >= now - keptFor ? reported : now
    const entry = { hostId, at, line: encodeSample(at, metrics) }
    this.#waiting.add(entry)
    this.#characters += entry.line.length
    for (const oldest of this.#waiting) {
      if (this.#characters <= this.#most) break
      this.remove(oldest)
      this.dropped += 1
    }
  }

  /** The oldest, so many at most. */
  first(most: number): WaitingSample[] {
    const found: WaitingSample[] = []
    for (const entry of this.#waiting) {
      if (found.length === most) break
      found.push(entry)
    }
    return found
  }

  remove(entry: WaitingSample): void {
    if (this.#waiting.delete(entry)) this.#characters -= entry.line.length
  }

  forget(hostId: number): void {
    for (const entry of this.#waiting) if (entry.hostId === hostId) this.remove(entry)
  }

  /** Those of a host from `from` to `to`, both included. */
  of(hostId: number, from: number, to: number): WaitingSample[] {
    return [...this.#waiting].filter((entry) => entry.hostId === hostId && entry.at >= from && entry.at <= to)
  }
}
