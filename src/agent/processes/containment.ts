import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentHello } from '../../core/protocol/messages.ts'
import { cgroupHome } from './cgroup.ts'
import { removeCgroup } from './cgroup-files.ts'
import { ProcessTable } from './processes.ts'
import { type EndingTimes, endTree, levelOf, type Remnant, type Tree } from './tree.ts'

/** How trees of processes are held together on this machine. */
export interface Containment {
  readonly level: AgentHello['capabilities']['containment']
  /** The cgroup of an execution, created; null where there are none. */
  create(taskId: string): string | null
  /** Ends a whole tree: TERM, 5 s, KILL (contract §4). Answers what outlived even that. Rejects where /proc can't be read. */
  end(tree: Tree): Promise<Remnant[]>
  /** Removes what has become empty since, but those of the executions named. */
  sweep(running: ReadonlySet<string>): void
}

/**
 * Tries it out: a cgroup counts only if one can be made here and has `cgroup.kill` (Linux 5.14). Names begin with the
 * journal's id, so that agents on one machine never sweep away each other's.
 */
export function findContainment(storeId: string, isBoxed = false, times?: EndingTimes): Containment {
  const table = new ProcessTable()
  const end = (tree: Tree) => endTree(tree, table, times)
  const level = levelOf({ cgroup: null, isBoxed })
  const none: Containment = { level, create: () => null, end, sweep: () => {} }
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
