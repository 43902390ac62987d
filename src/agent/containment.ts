import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { AgentHello } from '../core/protocol/messages.ts'
import { cgroupHome } from './cgroup.ts'
import { isAlive, nameOf, type ProcessId, processesOf } from './machine.ts'

/** Between TERM and KILL, milliseconds (contract §4). */
export const gracePeriod = 5_000
const lookEvery = 40
/** How long KILL may take to be obeyed: a process in uninterruptible sleep does not hold up the result for ever. */
const killPatience = 5_000

/** How trees of processes are held together on this machine. */
export interface Containment {
  readonly level: AgentHello['capabilities']['containment']
  /** The cgroup of an execution, created; null where there are none. */
  create(taskId: string): string | null
  /** Removes what has become empty since, but those of the executions named. */
  sweep(running: ReadonlySet<string>): void
}

/**
 * Tries it out: a cgroup counts only if one can be made here and has `cgroup.kill` (Linux 5.14). Names begin with the
 * journal's id, so that agents on one machine never sweep away each other's.
 */
export function findContainment(storeId: string, isBoxed = false): Containment {
  // The end of the first process of a PID namespace is the end of all in it.
  const level = isBoxed ? 'pid-namespace' : 'process-group'
  const none: Containment = { level, create: () => null, sweep: () => {} }
  try {
    const parent = cgroupHome(null)
    if (parent === null) return none
    const prefix = join(parent, `rsm-${storeId}`)
    const probe = `${prefix}-probe-${process.pid}`
    mkdirSync(probe)
    const canKill = existsSync(join(probe, 'cgroup.kill'))
    rmdirSync(probe)
    if (!canKill) return none
    return {
      level: 'cgroup',
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

/** One execution's processes: where they are held, and what they are known by. */
export interface Tree {
  readonly executionId: string
  readonly root: ProcessId | null
  readonly cgroup: string | null
  /** In a strict sandbox, whose own processes hand the script's exit code on and so are not asked to end. */
  readonly isBoxed: boolean
}

/** A cgroup and those that scripts made inside it, deepest first. */
function withChildren(path: string): string[] {
  const below = readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap((entry) => withChildren(join(path, entry.name)))
  return [...below, path]
}

function cgroupPids(path: string | null): number[] {
  if (path === null || !existsSync(path)) return []
  return withChildren(path).flatMap((group) =>
    readFileSync(join(group, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number),
  )
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It ended by itself in this very moment, which is what was wanted.
  }
}

function remaining(tree: Tree, known: Map<number, ProcessId>): number[] {
  // Kept across looks: a child whose parent has ended is no descendant any more.
  for (const found of processesOf(tree.executionId, tree.root)) known.set(found.pid, found)
  const pids = new Set(cgroupPids(tree.cgroup))
  for (const found of known.values()) if (isAlive(found)) pids.add(found.pid)
  return [...pids]
}

function kill(tree: Tree, pids: number[]): void {
  if (tree.cgroup !== null && existsSync(tree.cgroup)) writeFileSync(join(tree.cgroup, 'cgroup.kill'), '1')
  for (const pid of pids) signal(pid, 'SIGKILL')
}

/** Ends a whole tree: TERM, 5 s, KILL (contract §4). False when something outlived even that. */
export async function endTree(tree: Tree): Promise<boolean> {
  const known = new Map<number, ProcessId>()
  const began = performance.now()
  for (const pid of remaining(tree, known)) {
    if (tree.isBoxed && nameOf(pid) === 'bwrap') continue
    signal(pid, 'SIGTERM')
    // A stopped process gets TERM only once it goes on.
    signal(pid, 'SIGCONT')
  }
  while (performance.now() - began < gracePeriod) {
    if (remaining(tree, known).length === 0) return true
    await delay(lookEvery)
  }
  const killed = performance.now()
  while (performance.now() - killed < killPatience) {
    const pids = remaining(tree, known)
    if (pids.length === 0) return true
    kill(tree, pids)
    await delay(lookEvery)
  }
  return false
}

/** Removes an empty cgroup; false while something that the script left behind still lives in it. */
export function removeCgroup(path: string): boolean {
  if (!existsSync(path)) return true
  try {
    for (const group of withChildren(path)) rmdirSync(group)
    return true
  } catch {
    return false
  }
}
