import type { Clock } from '../clock.ts'
import type { Containment } from '../processes/containment.ts'
import { isAlive, type Machine, type ProcessId } from '../processes/machine.ts'
import type { Tree } from '../processes/processes.ts'
import { leftOver } from '../processes/survivors.ts'
import { levelOf } from '../processes/tree.ts'
import { readExit } from '../script/launch.ts'
import type { JournaledExecution, Started } from './journaled.ts'
import { nothingLeft, type Outcome, outcome } from './run.ts'

/** How soon the end of a script is seen that an earlier agent started. */
const lookEvery = 50

/** Still there, by its wrapper; or ended, and how. */
type Found = { root: ProcessId } | { outcome: Outcome }

/** The tree of an execution that has been started, with its output in `directory`. */
export function treeOf(
  { mark, cgroup, isBoxed, uid }: Started,
  root: ProcessId | null,
  directory: string,
): Tree {
  const own = process.getuid?.() ?? 0
  return { mark: mark ?? null, root, uids: [uid ?? own], cgroup, isBoxed: isBoxed === true, directory }
}

/** Finds out about an execution that an earlier agent started: the true result, or LOST where it can't be known. */
export async function whatBecameOf(
  record: JournaledExecution,
  started: Started,
  directory: string,
  { machine, containment }: { machine: Machine; containment: Containment },
): Promise<Found> {
  const isSameBoot = machine.bootId() === started.bootId
  const left = readExit(directory)
  const root = (isSameBoot && record.spawned) || null
  if (root && isAlive(root) && !(left !== null && record.ending)) return { root }
  const tree = treeOf(started, root, directory)
  // What is to end as a whole may outlive its wrapper, and the agent that had begun with it. And without its wrapper
  // nobody would learn how the rest ends.
  const isToEnd = isSameBoot && (left === null || record.ending !== undefined)
  const ended = isToEnd ? await containment.end(tree) : nothingLeft
  const exit = left ?? readExit(directory)
  const duration = exit ? Math.max(0, Math.round((exit.uptime - started.uptime) * 1000)) : 0
  if (exit !== null || record.ending)
    return { outcome: outcome(exit, { tree, reason: record.ending, duration, ended }) }
  const gone = isSameBoot
    ? 'its processes were gone when the agent came back, and left no exit code'
    : 'the host was restarted while it ran'
  const rest = leftOver(ended)
  const error = rest.told === null ? gone : `${gone}; ${rest.told}`
  return {
    outcome: {
      exitCode: 255,
      status: 'LOST',
      signal: null,
      error,
      duration,
      containment: levelOf(tree),
      ...rest.left,
    },
  }
}

/**
 * Whether an execution that the journal calls started has certainly not begun, as its agent died before it let it begin:
 * its process was not named yet, or has left word that nobody told it to. Such a one may still have its one start, unless
 * the machine was restarted: then the journal may have lost a line.
 */
export function neverBegan(
  { started, spawned, ending, complete }: JournaledExecution,
  directory: string,
  machine: Machine,
): boolean {
  if (started?.bootId !== machine.bootId() || ending || complete) return false
  return spawned === undefined || readExit(directory)?.isNever === true
}

/** Settles when the process has ended; never, once `isStopped` says so. It is no child of ours: it has to be watched. */
export function untilGone(root: ProcessId, clock: Clock, isStopped: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (isStopped()) return
      if (isAlive(root)) clock.after(lookEvery, look)
      else resolve()
    }
    look()
  })
}
