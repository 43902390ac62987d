import { faultPoint } from '#fault-point'
import { finalTaskStatus } from '../../../core/task/task.ts'
import { isoTime } from '../../clock.ts'
import { resultOf } from '../../executions/shown.ts'
import type { Executions } from '../../seams/executions.ts'
import type { TaskRecord } from '../../seams/records/task.ts'
import type { ExecutionsDependencies } from './dependencies.ts'
import type { RunningTasks } from './running-tasks.ts'

type LateResult = Parameters<Executions['late']>[2]

/** The end of a task: its results move to a file, its executions leave the store. What is learnt later goes to either. */
export function createEnds(
  { store, outputs, results, hints, ownership, clock }: ExecutionsDependencies,
  tasks: RunningTasks,
): Pick<Executions, 'finish' | 'late'> {
  let amending: Promise<void> = Promise.resolve()

  async function end(by: Parameters<Executions['finish']>[0], taskId: string): Promise<TaskRecord | null> {
    const running = tasks.get(taskId)
    const task = await store.get('tasks', taskId)
    if (!running || running.isOpen || !task || !ownership.holdsNow(by, taskId)) return null
    const now = clock.now()
    const started = Date.parse(task.startedAt ?? task.createdAt)
    faultPoint('server.archived.before')
    await results.write(taskId, { script: task.content ?? '', results: running.executions.map(resultOf) })
    faultPoint('server.archived.after')
    faultPoint('server.final.before')
    const final = await store.transact(async (tx) => {
      // A cancel may have come, or another step have ended it, while the results were written.
      const current = await tx.get('tasks', taskId)
      if (current?.status !== 'RUNNING' || !ownership.holdsNow(by, taskId)) return null
      const status = finalTaskStatus(running.counts, current.cancelRequestedAt !== null)
      if (status === null) return null
      const ended: TaskRecord = {
        ...current,
        status,
        counts: { ...running.counts },
        content: null,
        secretParams: null,
        pauseUntil: null,
        completedAt: isoTime(Math.max(now, started)),
        duration: Math.max(0, now - started),
      }
      tx.put('tasks', ended)
      for (const { id } of running.executions) tx.remove('executions', id)
      return ended
    })
    faultPoint('server.final.after')
    if (!final) return null
    tasks.delete(taskId)
    await outputs.finish(taskId)
    hints.publish('task', { id: taskId, hostId: null, change: 'updated' })
    return final
  }

  /** True when the task has ended, and its executions with it. */
  async function keep(taskId: string, hostId: number, lateResult: LateResult): Promise<boolean> {
    const running = tasks.get(taskId)
    const execution = running?.ofHost(hostId)
    if (!running || !execution) return true
    if (execution.lateResult || execution.exitCode !== null) return false
    faultPoint('server.late.before')
    const kept = await store.transact(async (tx) => {
      const current = await tx.get('executions', execution.id)
      if (!current) return null
      const next = { ...current, lateResult }
      tx.put('executions', next)
      return next
    })
    faultPoint('server.late.after')
    if (!kept) return true
    tasks.apply([kept])
    // Where the task ends in this very moment, its results may have been written without this one.
    return !running.isOpen
  }

  async function amend(taskId: string, hostId: number, lateResult: LateResult): Promise<void> {
    const remains = await results.read(taskId)
    const result = remains?.results.find((one) => one.hostId === hostId)
    if (!remains || !result || result.exitCode !== null || result.lateResult !== null) return
    const amended = remains.results.map((other) => (other === result ? { ...other, lateResult } : other))
    faultPoint('server.late.before')
    await results.write(taskId, { ...remains, results: amended })
    // Retention may have removed the task since it was read: nothing would ever look for this again.
    if (!(await store.get('tasks', taskId))) await results.forget(taskId)
    faultPoint('server.late.after')
  }

  return {
    finish(by, taskId) {
      const ending = end(by, taskId)
      const running = tasks.get(taskId)
      if (running) running.ending = ending.catch(() => undefined)
      return ending
    },
    async late(taskId, hostId, lateResult) {
      const running = tasks.get(taskId)
      if (!(await keep(taskId, hostId, lateResult))) return
      await running?.ending
      // One after the other: each reads what the one before has written.
      amending = amending.catch(() => undefined).then(() => amend(taskId, hostId, lateResult))
      await amending
    },
  }
}
