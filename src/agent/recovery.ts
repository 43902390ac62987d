import type { Clock } from './clock.ts'
import { endTree } from './containment.ts'
import type { ExecutionRecord, Started } from './execution-record.ts'
import { readExit } from './launch.ts'
import { isAlive, type Machine, type ProcessId, wrapperOf } from './machine.ts'
import { type Outcome, outcome } from './run.ts'

/** How soon the end of a script is seen that an earlier agent started. */
const lookEvery = 50

/** Still there, by its wrapper; or ended, and how. */
type Found = { root: ProcessId } | { outcome: Outcome }

/** Finds out about an execution that an earlier agent started: the true result, or LOST where it can't be known. */
export async function whatBecameOf(
  record: ExecutionRecord,
  started: Started,
  executionId: string,
  directory: string,
  machine: Machine,
): Promise<Found> {
  const isSameBoot = machine.bootId() === started.bootId
  // Without a pid the agent died in the instant after the spawn.
  const root = isSameBoot ? (record.spawned ?? wrapperOf(executionId)) : null
  if (root && isAlive(root)) return { root }
  const exit = readExit(directory)
  // Also when the script has ended: what it left behind may have outlived TERM, and the agent that was to send KILL.
  if (record.ending && isSameBoot)
    await endTree({
      executionId,
      root,
      cgroup: started.cgroup,
      isBoxed: started.isBoxed === true,
    })
  const duration = exit ? Math.max(0, Math.round((exit.uptime - started.uptime) * 1000)) : 0
  if (exit !== null || record.ending) return { outcome: outcome(exit, record.ending, duration) }
  const error = isSameBoot
    ? 'its processes were gone when the agent came back, and left no exit code'
    : 'the host was restarted while it ran'
  return { outcome: { exitCode: 255, status: 'LOST', signal: null, error, duration } }
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
