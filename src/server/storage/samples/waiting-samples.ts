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

/** Milliseconds by which an agent's clock may be ahead and still count. */
const tolerance = 60_000

/** Samples that are not written yet, oldest first; beyond a limit the oldest are dropped. */
export class WaitingSamples {
  /** Count since this was last set to 0. */
  dropped = 0
  #characters = 0
  readonly #waiting = new Set<WaitingSample>()
  readonly #clock: Clock
  readonly #most: number

  /** `most`: maximum characters of all pending samples. */
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

  /** Adds a sample at the time that its agent reports, or now if that is implausible (contract §3). */
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

  /** Samples of a host from `from` to `to`, both inclusive. */
  of(hostId: number, from: number, to: number): WaitingSample[] {
    return [...this.#waiting].filter((entry) => entry.hostId === hostId && entry.at >= from && entry.at <= to)
  }
}
