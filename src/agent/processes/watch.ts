import type { ProcessId } from './machine.ts'
import type { ProcessTable, Tree } from './processes.ts'
import { lookAt } from './strays.ts'

/** Milliseconds from one look to the next. */
const lookEvery = 1_000
/** Looks take at most one part in so many of the time. */
const lookShare = 50

interface Noted {
  /** By pid: what the last two looks found. A process may be begun while one of them reads. */
  known: Map<number, ProcessId>
}

/**
 * Notes what the trees are made of that nothing holds, while they run: what has a parent or a session of theirs now is
 * known later, when it has left both. Costs nothing while there is none.
 */
export class Watch {
  readonly #table: ProcessTable
  readonly #trees = new Map<Tree, Noted>()
  #timer: NodeJS.Timeout | undefined

  constructor(table: ProcessTable) {
    this.#table = table
  }

  /** Until what it answers is called. */
  add(tree: Tree): () => void {
    this.#trees.set(tree, { known: new Map() })
    this.#arm(lookEvery)
    return () => {
      this.#trees.delete(tree)
      if (this.#trees.size > 0) return
      clearTimeout(this.#timer)
      this.#timer = undefined
    }
  }

  /** What is known of a tree, for who ends it. */
  knownOf(tree: Tree): Map<number, ProcessId> {
    return new Map(this.#trees.get(tree)?.known)
  }

  /** Whether a process is known to belong to another tree. */
  isOfAnother({ pid, startTime }: ProcessId, tree: Tree): boolean {
    for (const [other, { known }] of this.#trees)
      if (other !== tree && known.get(pid)?.startTime === startTime) return true
    return false
  }

  #arm(pause: number): void {
    this.#timer ??= setTimeout(() => void this.#look(), pause).unref()
  }

  async #look(): Promise<void> {
    const began = performance.now()
    // A look that fails (EMFILE) is made up for by the next.
    await Promise.allSettled([...this.#trees].map(([tree, noted]) => this.#note(tree, noted)))
    this.#timer = undefined
    if (this.#trees.size > 0) this.#arm(Math.max(lookEvery, (performance.now() - began) * lookShare))
  }

  async #note(tree: Tree, noted: Noted): Promise<void> {
    const found = new Map(noted.known)
    const { members } = await lookAt(tree, this.#table, found)
    // A pid that was given anew must not make another's session this tree's.
    const used = new Set(members.flatMap(({ pid, session }) => [pid, session]))
    const before = [...noted.known].filter(([pid]) => used.has(pid))
    noted.known = new Map([
      ...before,
      ...members.map(({ pid, startTime }) => [pid, { pid, startTime }] as const),
    ])
  }
}
