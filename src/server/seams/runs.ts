import type { RunMark } from '../../core/protocol/messages.ts'

/** The starts of servers on one store: agents remember how far it had come, and so notice when it is older than that. */
export interface Runs {
  /** This one. */
  readonly id: string
  readonly startedAt: string
  /** The newest sequence of this start that this server knows to be durable. */
  readonly sequence: number
  /**
   * How far the store has come, with all that was acknowledged before the call: an ordinary crash takes nothing of it back.
   * Null while this start can't be noted: no agent may remember what the store would not know.
   */
  mark(): RunMark | null | Promise<RunMark | null>
  /** The same as it was a second ago at most. */
  recent(): RunMark | null
  /** Whether the store has what a mark speaks of. */
  knows(mark: RunMark): boolean | Promise<boolean>
}
