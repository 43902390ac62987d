import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Containment as Level } from '../../core/hosts/host.ts'
import type { ScriptComplete } from '../../core/protocol/messages.ts'
import { cgroupHome, removeCgroup } from './cgroups.ts'
import type { ProcessId } from './machine.ts'
import { ProcessTable, type Tree } from './processes.ts'
import { isLoose, scanTree } from './strays.ts'
import { type EndingTimes, endTree, levelOf, type Remnant } from './tree.ts'
import type { Writer } from './writers.ts'

/** Milliseconds between scans of loose trees. */
const pollInterval = 1_000
/** Scans take at most one fiftieth of the time. */
const pollShare = 50
/** Processes listed in a result; more would not help. */
const maxSurvivors = 20
const longestCommand = 64

interface Ended {
  readonly remnants: readonly Remnant[]
  /** False if a live process may have left the tree unnoticed. */
  readonly isAllKnown: boolean
}

export interface Containment {
  readonly level: Level
  /** Creates the cgroup of an execution; null if cgroups cannot be used. */
  create(taskId: string): string | null
  /** Records the processes of a loose tree while it runs. Call the result to stop. */
  note(tree: Tree): () => void
  /** Ends a whole tree: TERM, 5 s, KILL (contract §4). Rejects if /proc cannot be read. */
  end(tree: Tree): Promise<Ended>
  /** Removes cgroups that are empty by now, except those of the given executions. */
  sweep(running: ReadonlySet<string>): void
}

interface Noted {
  /** By pid: processes of the last two scans, because one may start while a scan reads. */
  known: Map<number, ProcessId>
}

/**
 * Probes the host: cgroups are used only if one can be created and has `cgroup.kill` (Linux 5.14). Names
 * begin with the journal's id, so that agents on one machine never remove each other's.
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
    // A threaded group cannot hold the cgroup of a whole process (cgroups(7), "thread mode").
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
 * Records processes of loose trees while they run, so that those that later leave both parent and session are
 * still known. Costs nothing while there is no such tree.
 */
class Watch {
  readonly #table: ProcessTable
  readonly #trees = new Map<Tree, Noted>()
  #timer: NodeJS.Timeout | undefined

  constructor(table: ProcessTable) {
    this.#table = table
  }

  /** Call the result to stop. */
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

  knownOf(tree: Tree): Map<number, ProcessId> {
    return new Map(this.#trees.get(tree)?.known)
  }

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
    // The next scan makes up for a failed one (EMFILE).
    await Promise.allSettled([...this.#trees].map(([tree, noted]) => this.#note(tree, noted)))
    this.#timer = undefined
    if (this.#trees.size > 0) this.#arm(Math.max(pollInterval, (performance.now() - began) * pollShare))
  }

  async #note(tree: Tree, noted: Noted): Promise<void> {
    const found = new Map(noted.known)
    const { members } = await scanTree(tree, this.#table, found)
    // A reused pid must not add another's session to this tree.
    const used = new Set(members.flatMap(({ pid, session }) => [pid, session]))
    const before = [...noted.known].filter(([pid]) => used.has(pid))
    noted.known = new Map([
      ...before,
      ...members.map(({ pid, startTime }) => [pid, { pid, startTime }] as const),
    ])
  }
}

export interface LeftProcesses extends Ended {
  /** Processes that hold the output of a script that ended on its own. */
  readonly writers?: readonly Writer[]
}

/** For a tree that did not have to be ended. */
export const nothingLeft: LeftProcesses = { remnants: [], isAllKnown: true }

export function listed(remnants: readonly Remnant[]): { pid: number; command: string }[] {
  return remnants
    .slice(0, maxSurvivors)
    .map(({ pid, command }) => ({ pid, command: command.slice(0, longestCommand) }))
}

/** Part of a result about remaining processes; `survivors` is absent if unknown. */
export function leftReport({ remnants, isAllKnown, writers = [] }: LeftProcesses): {
  fields: Pick<ScriptComplete, 'survivors'>
  message: string | null
} {
  const message = remnantText(remnants)
  if (isAllKnown) return { fields: { survivors: listed([...remnants, ...writers]) }, message }
  const unknown = 'processes that left their parents are not known'
  return { fields: {}, message: message === null ? unknown : `${message}; ${unknown}` }
}

/** `4711 sh still holds the script's output open: later output is dropped`; null if none does. */
export function stillWriting({ writers = [] }: LeftProcesses): string | null {
  if (writers.length === 0) return null
  if (!writers.every(({ isSeen }) => isSeen))
    return `${named(writers)} may still hold the script's output open: later output is dropped`
  const verb = writers.length === 1 ? 'holds' : 'hold'
  return `${named(writers)} still ${verb} the script's output open: later output is dropped`
}

/** `could not end: 4711 dd (in uninterruptible sleep), 4712 sleep`; null if all have ended. */
export function remnantText(remnants: readonly Remnant[]): string | null {
  if (remnants.length === 0) return null
  return `could not end: ${named(remnants)}`
}

function named(remnants: readonly Remnant[]): string {
  const texts = remnants
    .slice(0, maxSurvivors)
    .map(
      ({ pid, command, isUninterruptible }) =>
        `${pid} ${command.slice(0, longestCommand)}${isUninterruptible ? ' (in uninterruptible sleep)' : ''}`,
    )
  const more = remnants.length - texts.length
  return `${texts.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
