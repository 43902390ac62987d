import { faultPoint } from '#fault-point'
import { RsmError } from '../../../../core/errors.ts'
import { Mutex } from '../../../../core/mutex.ts'
import { endedTask, isNews, textsOf } from '../../executions/ends.ts'
import { resultOf } from '../../executions/summary.ts'
import { asCancelled } from '../../executions/transitions.ts'
import type { Executions } from '../../ports/executions.ts'
import type { Progress } from '../../ports/outputs.ts'
import type { Transaction } from '../../ports/store.ts'
import type { TaskRecord } from '../../records/task.ts'
import type { RunningTasks } from './running-tasks.ts'
import type { ExecutionsDependencies, Steps } from './steps.ts'

/** Steps of whole tasks, from their creation to the results that arrive after their end. */
export function createTaskSteps(
  steps: Steps,
): Pick<Executions, 'create' | 'pause' | 'cancel' | 'finish' | 'late'> {
  const { tasks } = steps
  const { store, hints, ownership } = steps.deps
  return {
    async create(task, executions, also) {
      faultPoint('server.created.before')
      const other = await store.transact(async (tx) => {
        const answer = await also(tx)
        if (answer !== null) return answer
        tx.put('tasks', task)
        for (const execution of executions) tx.put('executions', execution)
        return null
      })
      faultPoint('server.created.after')
      if (other === null) {
        tasks.add(task, executions, new Map<number, Progress>())
        hints.publish('task', { id: task.id, hostId: null, change: 'created' })
        // After the response to the request.
        setImmediate(() => tasks.hintQueues(executions))
      }
      return other
    },

    async pause(by, taskId, pauseUntil) {
      faultPoint('server.paused.before')
      await store.transact(async (tx) => {
        const task = await tx.get('tasks', taskId)
        if (task?.status === 'RUNNING' && ownership.holdsNow(by, taskId))
          tx.put('tasks', { ...task, pauseUntil })
      })
      faultPoint('server.paused.after')
    },

    async cancel(taskId, how) {
      const finished = new RsmError('conflict', `Task ${taskId} has already ended`)
      const at = steps.now()
      // One step: if only the request were durable, hosts would still start after a crash.
      const first = async (tx: Transaction) => {
        const task = await tx.get('tasks', taskId)
        if (task?.status !== 'RUNNING') throw finished
        tx.put('tasks', { ...task, cancelRequestedAt: task.cancelRequestedAt ?? at })
      }
      const ids = tasks.get(taskId)?.executions.map(({ id }) => id) ?? []
      const changed = await steps.change('cancelled', ids, asCancelled(at, how), { first })
      hints.publish('task', { id: taskId, hostId: null, change: 'updated' })
      return changed
    },
    ...createEnds(steps.deps, tasks),
  }
}

type LateResult = Parameters<Executions['late']>[2]

/**
 * Ends tasks: results move to a file, executions leave the store. A late result goes to the
 * execution, or to the file once the task has ended.
 */
function createEnds(
  { store, outputs, results, hints, ownership, clock }: ExecutionsDependencies,
  tasks: RunningTasks,
): Pick<Executions, 'finish' | 'late'> {
  const amends = new Mutex()

  async function end(...[by, taskId, also]: Parameters<Executions['finish']>): Promise<TaskRecord | null> {
    const running = tasks.get(taskId)
    const task = await store.get('tasks', taskId)
    if (!running || running.isOpen || !task || !ownership.holdsNow(by, taskId)) return null
    const now = clock.now()
    faultPoint('server.archived.before')
    const { params } = task
    const hasParams = Object.keys(params).length > 0
    const texts = { ...textsOf(task), ...(hasParams && { params }) }
    await results.write(taskId, { ...texts, results: running.executions.map(resultOf) })
    faultPoint('server.archived.after')
    faultPoint('server.final.before')
    const final = await store.transact(async (tx) => {
      // The task may have been cancelled, or ended by another step, while the results were written.
      const current = await tx.get('tasks', taskId)
      const ended = current && ownership.holdsNow(by, taskId) ? endedTask(current, running.counts, now) : null
      if (!ended) return null
      // Keep params in the results file, because all records are held in memory.
      tx.put('tasks', hasParams ? { ...ended, params: {}, paramsInResults: true } : ended)
      also?.(tx, ended)
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

  /** True if the task has ended, and its executions with it. */
  async function putLate(taskId: string, hostId: number, lateResult: LateResult): Promise<boolean> {
    const running = tasks.get(taskId)
    const execution = running?.ofHost(hostId)
    if (!running || !execution) return true
    if (!isNews(execution)) return false
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
    // A task that is ending right now may have written its results without this one.
    return !running.isOpen
  }

  async function amend(taskId: string, hostId: number, lateResult: LateResult): Promise<void> {
    const remains = await results.read(taskId)
    const result = remains?.results.find((one) => one.hostId === hostId)
    if (!remains || !result || !isNews(result)) return
    const amended = remains.results.map((other) => (other === result ? { ...other, lateResult } : other))
    faultPoint('server.late.before')
    await results.write(taskId, { ...remains, results: amended })
    // Retention may have removed the task since it was read; nothing would clean this file up later.
    if (!(await store.get('tasks', taskId))) await results.forget(taskId)
    faultPoint('server.late.after')
  }

  return {
    finish(by, taskId, also) {
      const ending = end(by, taskId, also)
      const running = tasks.get(taskId)
      if (running) running.ending = ending.catch(() => undefined)
      return ending
    },
    async late(taskId, hostId, lateResult) {
      const running = tasks.get(taskId)
      if (!(await putLate(taskId, hostId, lateResult))) return
      await running?.ending
      // One at a time: each reads what the previous one wrote.
      await amends.run(() => amend(taskId, hostId, lateResult))
    },
  }
}
