import type { Clock } from '../../../../disk/clock.ts'
import type { Log } from '../../../../disk/log.ts'

/** Five a second, of reports that come each minute by default: what one agent sends can not fill the disk of all. */
const mostInHour = 18_000
const hour = 3600_000

/** How many samples each host may bring in an hour. */
export class Allowance {
  #hour = 0
  readonly #counts = new Map<number, number>()
  readonly #clock: Clock
  readonly #log: Log

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  /** Whether one more of this host is taken. */
  takes(hostId: number): boolean {
    const now = Math.floor(this.#clock.monotonic() / hour)
    if (now !== this.#hour) this.#counts.clear()
    this.#hour = now
    const count = (this.#counts.get(hostId) ?? 0) + 1
    this.#counts.set(hostId, count)
    if (count === mostInHour + 1)
      this.#log.warn(
        { hostId },
        "a host's metrics history of this hour is full; further samples are not kept",
      )
    return count <= mostInHour
  }
}
