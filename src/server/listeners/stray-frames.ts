import { Allowance } from '../../core/allowance.ts'
import { BoundedMap } from '../../core/bounded-map.ts'

/** Stray frames that an agent may send at once, and milliseconds until it may send one more: 600 a minute. */
const most = 600
const period = 100
/**
 * Frames about one task or session that may be on their way while the agent has yet to hear that it is none of its: they count
 * as one. An agent of ours has 1,024 of them on their way at most.
 */
const onTheWay = 2048
/** Tasks and sessions that are told apart on one link. */
const mostToldApart = 1024

/** Budget of stray frames by agent, over all its links. */
export const createStrayAllowance = (): Allowance => new Allowance(most, period)

/** Counts the stray frames of one link (P31). */
export class StrayFrames {
  readonly #allowance: Allowance
  readonly #agentId: string
  readonly #frames = new BoundedMap<string, { count: number }>(mostToldApart)

  constructor(allowance: Allowance, agentId: string) {
    this.#allowance = allowance
    this.#agentId = agentId
  }

  /** One more at `now` (monotonic milliseconds), about this task or session; false: it is one too many. */
  take(about: string | null, now: number): boolean {
    return (about !== null && !this.#counts(about)) || this.#allowance.take(this.#agentId, now) === 0
  }

  #counts(about: string): boolean {
    const frames = this.#frames.get(about)
    if (frames) return frames.count++ > onTheWay
    this.#frames.set(about, { count: 1 })
    return true
  }
}
