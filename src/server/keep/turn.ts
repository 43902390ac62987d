import { RsmError } from '../../core/errors.ts'

/** Of those who take from the data and those who read all of it, one at a time. */
export interface Turn {
  /** Ends the turn that it answers; null where another has it. */
  tryTake(what: string): (() => void) | null
  /** Waits for a turn that another has. Rejects with `conflict` where one of the same kind is under way or waits. */
  take(what: string): Promise<() => void>
}

export function createTurn(): Turn {
  /** What is under way and what waits; never more than one of a kind. */
  const kinds = new Set<string>()
  /** Resolves when the one under way has ended. */
  const turn: { ends: Promise<void> | null } = { ends: null }

  function begin(what: string): () => void {
    kinds.add(what)
    let end = () => undefined as void
    turn.ends = new Promise((resolve) => {
      end = resolve
    })
    return () => {
      kinds.delete(what)
      turn.ends = null
      end()
    }
  }

  return {
    tryTake: (what) => (turn.ends === null ? begin(what) : null),
    async take(what) {
      if (kinds.has(what))
        throw new RsmError('conflict', `${what} is under way already`, { hint: 'wait until it has ended' })
      kinds.add(what)
      while (turn.ends !== null) await turn.ends
      return begin(what)
    },
  }
}
