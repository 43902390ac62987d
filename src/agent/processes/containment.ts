import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Containment as Level } from '../../core/hosts/host.ts'
import { cgroupHome, removeCgroup } from './cgroups.ts'
import type { ProcessId } from './machine.ts'
import { ProcessTable, type Tree } from './processes.ts'
import { isLoose, scanTree } from './strays.ts'
import { type EndingTimes, endTree, levelOf, type Remnant } from './tree.ts'

/** Milliseconds from one scan of the loose trees to the next. */
const pollInterval = 1_000
/** Scans take at most one part in so many of the time. */
const pollShare = 50

/** What is known of the end of a tree. */
export interface Ended {
  /** What could not be ended. */
  readonly remnants: readonly Remnant[]
  /** False where something lives that may have left the tree unseen. */
  readonly isAllKnown: boolean
}

/** How trees of processes are held together on this machine. */
export interface Containment {
  readonly level: Level
  /** The cgroup of an execution, created; null where there are none. */
  create(taskId: string): string | null
  /** Notes what a tree is made of while it runs, where nothing holds it; until what it answers is called. */
  note(tree: Tree): () => void
  /** Ends a whole tree: TERM, 5 s, KILL (contract §4). Answers what outlived even that. Rejects where /proc can't be read. */
  end(tree: Tree): Promise<Ended>
  /** Removes what has become empty since, but those of the executions named. */
  sweep(running: ReadonlySet<string>): void
}

interface Noted {
  /** By pid: what the last two scans found. A process may be begun while one of them reads. */
  known: Map<number, ProcessId>
}

/**
 * Tries it out: a cgroup counts only if one can be made here and has `cgroup.kill` (Linux 5.14). Names begin with the
 * journal's id, so that agents on one machine never sweep away each other's.
 */
export function findContainment(storeId: string, isBoxed = false, times?: EndingTimes): Containment {
  const table = new ProcessTable()
  const watch = new Watch(table)
  const note = (tree: Tree) => (isLoose(tree) ? watch.add(tree) : () => {})
  const end = async (tree: Tree): Promise<Ended> => {
    const known = watch.knownOf(tree)
    const remnants = await endTree(tree, table, times, known)
    if (!isLoose(tree)) return { remnants, isAllKnown: true }
    const { strays } = await scanTree(tree, table, known)
    return { remnants, isAllKnown: strays.every((stray) => watch.isOfAnother(stray, tree)) }
  }
  const level = levelOf({ cgroup: null, isBoxed })
  const none: Containment = { level, create: () => null, note, end, sweep: () => {} }
  try {
    const parent = cgroupHome(null)
    if (parent === null) return none
    const prefix = join(parent, `rsm-${storeId}`)
    const probe = `${prefix}-probe-${process.pid}`
    mkdirSync(probe)
    // Below a group of threads none of a whole process can be (cgroups(7), "thread mode").
    const canKill =
      existsSync(join(probe, 'cgroup.kill')) &&
      readFileSync(join(probe, 'cgroup.type'), 'utf8').trim() === 'domain'
    rmdirSync(probe)
    if (!canKill) return none
    return {
      level: 'cgroup',
      note,
      end,
      create(taskId) {
        const path = `${prefix}-${taskId}`
        try {
          mkdirSync(path, { recursive: true })
          return path
        } catch {
          return null
        }
      },
      sweep(running) {
        for (const name of readdirSync(parent)) {
          const path = join(parent, name)
          if (path.startsWith(`${prefix}-`) && !running.has(path.slice(prefix.length + 1))) removeCgroup(path)
        }
      },
    }
  } catch {
    return none
  }
}

/**
 * Notes what the trees are made of that nothing holds, while they run: what has a parent or a session of theirs now is
 * known later, when it has left both. Costs nothing while there is none.
 */
class Watch {
  readonly #table: ProcessTable
  readonly #trees = new Map<Tree, Noted>()
  #timer: NodeJS.Timeout | undefined

  constructor(table: ProcessTable) {
    this.#table = table
  }

  /** Until what it answers is called. */
  add(tree: Tree): () => void {
    this.#trees.set(tree, { known: new Map() })
    this.#arm(pollInterval)
    return () => {
      this.#trees.delete(tree)
      if (this.#trees.size > 0) return
      clearTimeout(this.#timer)
      this.#timer = undefined
    }
  }

  /** The known processes of a tree. */
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
    this.#timer ??= setTimeout(() => void this.#poll(), pause).unref()
  }

  async #poll(): Promise<void> {
    const began = performance.now()
    // A scan that fails (EMFILE) is made up for by the next.
    await Promise.allSettled([...this.#trees].map(([tree, noted]) => this.#note(tree, noted)))
    this.#timer = undefined
    if (this.#trees.size > 0) this.#arm(Math.max(pollInterval, (performance.now() - began) * pollShare))
  }

  async #note(tree: Tree, noted: Noted): Promise<void> {
    const found = new Map(noted.known)
    const { members } = await scanTree(tree, this.#table, found)
    // A reused pid must not make another's session this tree's.
    const used = new Set(members.flatMap(({ pid, session }) => [pid, session]))
    const before = [...noted.known].filter(([pid]) => used.has(pid))
    noted.known = new Map([
      ...before,
      ...members.map(({ pid, startTime }) => [pid, { pid, startTime }] as const),
    ])
  }
}
