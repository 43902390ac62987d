import type { Clock } from '../../clock.ts'
import type { LinkClaim } from '../../seams/links.ts'

/** Milliseconds from the first look on in which a statement may still be carried out: PostgreSQL ends each after 10 s. */
const longest = 30_000

interface Doubt {
  readonly epoch: number
  /** Monotonic milliseconds; null before the first look. */
  until: number | null
}

/** Links for which something may have been marked as sent, as PostgreSQL went away before it answered. */
export class Doubtful {
  readonly #clock: Clock
  readonly #byHost = new Map<number, Doubt>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add({ hostId, epoch }: LinkClaim): void {
    this.#byHost.set(hostId, { epoch, until: null })
  }

  has({ hostId, epoch }: LinkClaim): boolean {
    return this.#byHost.get(hostId)?.epoch === epoch
  }

  /** Those among the hosts. */
  of(hostIds: readonly number[]): number[] {
    return this.#byHost.size === 0 ? [] : hostIds.filter((hostId) => this.#byHost.has(hostId))
  }

  /** All that is marked by now has been seen. */
  looked({ hostId }: LinkClaim): void {
    const doubt = this.#byHost.get(hostId)
    if (!doubt) return
    const now = this.#clock.monotonic()
    doubt.until ??= now + longest
    if (now >= doubt.until) this.#byHost.delete(hostId)
  }
}
