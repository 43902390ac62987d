import { join } from 'node:path'
import type { Clock } from '../clock.ts'
import type { ThrottledErrors } from '../log.ts'
import { type Containment, type LeftProcesses, leftReport, nothingLeft } from '../processes/containment.ts'
import { readExit } from '../processes/exit-file.ts'
import { isAlive, isOriginal, type Machine, mayBeShared, type ProcessId } from '../processes/machine.ts'
import type { Tree } from '../processes/processes.ts'
import { levelOf } from '../processes/tree.ts'
import { Execution } from './execution.ts'
import { dropOrder, loadOrder } from './execution-queue.ts'
import type { JournaledExecution, Started } from './journaled.ts'
import { drainOutput, drainTimeout, type Outcome, outcome } from './run.ts'
import type { RunnerOptions } from './runner-options.ts'
import { isGated, stepOf } from './steps.ts'

/** Milliseconds between checks of a script that an earlier agent started. */
const pollInterval = 50

type Found = { root: ProcessId } | { outcome: Outcome }

interface Recovered {
  readonly execution: Execution
  readonly record: JournaledExecution
}

/** Unacknowledged executions of the journal. Withdraws starts that never began. */
export async function recovered(
  { journal, directory, machine }: Pick<RunnerOptions, 'journal' | 'directory' | 'machine'>,
  errors: ThrottledErrors,
): Promise<Recovered[]> {
  const found: Recovered[] = []
  for (const record of journal.records.values()) {
    const { taskId } = record
    const execution = new Execution(taskId, join(directory, taskId))
    execution.step = stepOf(record)
    // If the disk refuses, the start counts: its result says that it never began, or LOST.
    if (neverBegan(record, execution.place, machine))
      errors.attempt('could not withdraw a start', taskId, () => journal.withdraw(taskId))
    const { received, started, complete, acknowledgedAt, isGated: hasGates = false } = record
    if (acknowledgedAt || !(received || started || complete)) continue
    execution.isDurable = true
    if (mayBeShared(record.origin, execution.directory, machine)) execution.permission = 'AWAITED'
    if (started && !complete) execution.started = started
    execution.step = stepOf(record)
    execution.isGated = hasGates
    execution.passed.push(...(record.passed ?? []))
    if (hasGates && complete) dropOrder(execution, errors)
    const order = hasGates && !complete ? await loadOrder(execution.directory) : null
    if (order && isGated(order)) execution.gates = order
    found.push({ execution, record })
  }
  return found
}

/** Process tree of a started execution whose output is in `directory`. */
export function treeOf(
  { mark, cgroup, isBoxed, uid }: Started,
  root: ProcessId | null,
  directory: string,
): Tree {
  const own = process.getuid?.() ?? 0
  return { mark: mark ?? null, root, uids: [uid ?? own], cgroup, isBoxed: isBoxed === true, directory }
}

interface Surroundings {
  readonly machine: Machine
  readonly containment: Containment
  readonly clock: Clock
  readonly isStopped: () => boolean
}

/** Finds the result of an execution that an earlier agent started; LOST if it cannot be known. */
export async function findOutcome(
  record: JournaledExecution,
  started: Started,
  directory: string,
  { machine, containment, clock, isStopped }: Surroundings,
): Promise<Found> {
  const isSameBoot = machine.bootId() === started.bootId
  // The processes in a copied journal belong to the original agent.
  const isOurs = isSameBoot && isOriginal(started, directory)
  const exitBefore = readExit(directory)
  const root = (isOurs && record.spawned) || null
  if (root && isAlive(root) && !(exitBefore !== null && record.ending)) return { root }
  const tree = treeOf(started, root, directory)
  // A tree that is being ended may outlive its wrapper and the agent that began to end it. Without its
  // wrapper, the result of the rest could not be learned.
  const isToEnd = isOurs && (exitBefore === null || record.ending !== undefined)
  const since = (uptime: number) => (machine.uptime() - uptime) * 1000
  let ended: LeftProcesses = nothingLeft
  if (isToEnd) ended = await containment.end(tree)
  else if (isOurs && exitBefore !== null && !exitBefore.isNever)
    ended = await drainOutput(directory, tree, {
      clock,
      age: since(started.uptime),
      patience: drainTimeout - since(exitBefore.uptime),
      isStopped,
    })
  const exit = exitBefore ?? readExit(directory)
  const duration = exit ? Math.max(0, Math.round((exit.uptime - started.uptime) * 1000)) : 0
  // An unrecorded exit by signal before a reboot is attributed to the shutdown.
  const diedInShutdown = !isSameBoot && exit !== null && exit.code >= 128
  if ((exit !== null && !diedInShutdown) || record.ending)
    return { outcome: outcome(exit, { tree, reason: record.ending, duration, ended }) }
  const gone = isOurs
    ? 'its processes were gone when the agent restarted, without an exit code'
    : isSameBoot
      ? 'the data directory of its agent was copied or restored while it ran'
      : 'the host was restarted while it ran'
  const rest = leftReport(ended)
  const error = rest.message === null ? gone : `${gone}; ${rest.message}`
  return {
    outcome: {
      exitCode: 255,
      status: 'LOST',
      signal: null,
      error,
      duration,
      containment: levelOf(tree),
      ...rest.fields,
    },
  }
}

/**
 * Whether a started execution certainly never began, because its agent died first: its process was not
 * journaled, or its wrapper reported that it was never told to begin. It may still start once, unless the
 * machine restarted: then the journal may have lost a line.
 */
export function neverBegan(
  { started, spawned, ending, complete }: JournaledExecution,
  directory: string,
  machine: Machine,
): boolean {
  if (started?.bootId !== machine.bootId() || ending || complete) return false
  if (!isOriginal(started, directory)) return false
  return spawned === undefined || readExit(directory)?.isNever === true
}

/** Resolves when the process has ended; never after `isStopped`. Polls, because it is not our child. */
export function untilGone(root: ProcessId, clock: Clock, isStopped: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const poll = () => {
      if (isStopped()) return
      if (isAlive(root)) clock.after(pollInterval, poll)
      else resolve()
    }
    poll()
  })
}
