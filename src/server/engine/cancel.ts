import { faultPoint } from '#fault-point'
import { RsmError } from '../../core/errors.ts'
import { isoTime } from '../clock.ts'
import type { ExecutionRecord } from '../seams/records.ts'
import type { Transaction } from '../seams/store.ts'
import { asLost } from './lost.ts'
import { type EngineState, ended } from './state.ts'
import type { TaskRun } from './task-run.ts'

const finished = (taskId: string) => new RsmError('conflict', `Task ${taskId} has already ended`)

function sendCancels(state: EngineState, executions: ExecutionRecord[]): void {
  for (const { hostId, taskId, status } of executions) {
    const { link } = state.lane(hostId)
    if (status === 'RUNNING' && link?.hello) link.send('CANCEL_SCRIPT', { taskId })
  }
}

/**
 * Cancels a task: what has not started never will, what runs is ended (contract §4). Resolves when the request is
 * durable; an agent that is away hears of it when it returns. A finished task is a `conflict`.
 */
export async function cancelTask(state: EngineState, taskId: string): Promise<TaskRun> {
  const run = state.runs.get(taskId)
  if (!run) throw finished(taskId)
  const at = isoTime(state.clock.now())
  const note = async (tx: Transaction) => {
    const current = await tx.get('tasks', taskId)
    if (current?.status !== 'RUNNING') throw finished(taskId)
    tx.put('tasks', { ...current, cancelRequestedAt: current.cancelRequestedAt ?? at })
  }
  const decide = (current: ExecutionRecord) => {
    if (current.status === 'PENDING') return ended(current, 'CANCELLED', at, null)
    // A base-protocol agent knows no cancel: what becomes of the script there can't be known.
    if (current.agentStoreId === null)
      return asLost(run, current, at, 'cancelled, but this agent can not end scripts')
    return current.cancelRequested ? null : { ...current, cancelRequested: true }
  }
  // One step: were the request durable and not the rest, hosts would still start after a crash.
  faultPoint('server.cancelled.before')
  const changed = await state.change(run, run.executions.keys(), decide, note)
  faultPoint('server.cancelled.after')
  run.task = { ...run.task, cancelRequestedAt: run.task.cancelRequestedAt ?? at }
  sendCancels(state, changed)
  return run
}

/** Ends everything of a host that is being deleted: its running results become LOST (contract §3). */
export async function abandonHost(state: EngineState, hostId: number): Promise<void> {
  const at = isoTime(state.clock.now())
  for (const run of state.runs.values()) {
    const execution = run.ofHost(hostId)
    if (!execution) continue
    await state.change(run, [execution.position], (current) =>
      current.status === 'PENDING'
        ? ended(current, 'UNREACHABLE', at, 'the host was deleted')
        : asLost(run, current, at, 'the host was deleted'),
    )
  }
}
