import { Allowance } from '../../core/allowance.ts'
import type { MessageType } from '../../core/protocol/messages.ts'

/**
 * Frames that one agent may send at once, and in each second from then on. A script's output is one frame in 10 ms at most, so
 * 64 busy ones send 6,400; an agent that is slowed down sends longer ones.
 */
const burst = 100_000
const perSecond = 10_000
/** Milliseconds for which a link that has sent too much is not read, at least. */
const shortest = 100
/** Frames that one of these counts as: it may be a commit of its own, where output shares one with what came beside it. */
const commitCost = 10
const commits: ReadonlySet<MessageType> = new Set([
  'SCRIPT_PHASE',
  'SCRIPT_COMPLETE',
  'TERMINAL_OPENED',
  'TERMINAL_CLOSED',
])

export const costOf = (type: MessageType): number => (commits.has(type) ? commitCost : 1)

/** How fast agents may send, over however many links. Frames beyond it wait in the socket, and so with the agent. */
export class FrameRate {
  readonly #allowance = new Allowance(burst, 1000 / perSecond)

  /** Counts frames of a host at `now`; answers for how many milliseconds its link is not to be read. */
  take(hostId: number, frames: number, now: number): number {
    const over = this.#allowance.spend(hostId, frames, now)
    return over > 0 ? over + shortest : 0
  }
}
