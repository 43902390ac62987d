import type { Clock } from '../../../../disk/clock.ts'
import type { LinkClaim } from '../../ports/cluster.ts'

/** Milliseconds from the first look on in which a statement may still be carried out: PostgreSQL ends each after 10 s. */
const longest = 30_000

interface Doubt {
  readonly epoch: number
  /** Ranges of the host's attempts with no answered one among them: a take may fail for hours. */
  readonly attempts: readonly (readonly [from: number, to: number])[]
  /** Monotonic milliseconds; null before the first look. */
  until: number | null
}

/** Attempts to send whose answers were lost, by link (docs/inside/sent-once.md). */
export class Doubtful {
  readonly #clock: Clock
  readonly #byHost = new Map<number, Doubt>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add({ hostId, epoch }: LinkClaim, attempt: number): void {
    const doubt = this.#byHost.get(hostId)
    if (doubt && doubt.epoch > epoch) return
    const earlier = doubt?.epoch === epoch ? doubt.attempts : []
    const last = doubt?.until === null ? earlier.at(-1) : undefined
    const attempts = last
      ? [...earlier.slice(0, -1), [last[0], attempt] as const]
      : [...earlier, [attempt, attempt] as const]
    this.#byHost.set(hostId, { epoch, attempts, until: null })
  }

  /** Attempts of this link as an int8multirange; a newer link ends the doubt, because its HELLO settles them. */
  attemptsOf({ hostId, epoch }: LinkClaim): string | null {
    const doubt = this.#byHost.get(hostId)
    if (doubt?.epoch === epoch) return `{${doubt.attempts.map(([from, to]) => `[${from},${to}]`).join()}}`
    if (doubt && doubt.epoch < epoch) this.#byHost.delete(hostId)
    return null
  }

  /** Those among the hosts. */
  of(hostIds: readonly number[]): number[] {
    return this.#byHost.size === 0 ? [] : hostIds.filter((hostId) => this.#byHost.has(hostId))
  }

  /** All that was marked when a take was asked for, in monotonic milliseconds, has been seen: its answer may be late. */
  looked({ hostId, epoch }: LinkClaim, askedAt: number): void {
    const doubt = this.#byHost.get(hostId)
    if (doubt?.epoch !== epoch) return
    doubt.until ??= this.#clock.monotonic() + longest
    if (askedAt >= doubt.until) this.#byHost.delete(hostId)
  }
}
