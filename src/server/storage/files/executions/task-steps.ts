import { faultPoint } from '#fault-point'
import { RsmError } from '../../../../core/errors.ts'
import {
  asCancelled,
  asDue,
  type Decide,
  endsById,
  neverStarted,
  partings,
} from '../../executions/transitions.ts'
import type { Execution, Executions } from '../../ports/executions.ts'
import type { Progress } from '../../ports/outputs.ts'
import type { Transaction } from '../../ports/store.ts'
import type { Steps } from './steps.ts'

export function createTaskSteps(
  steps: Steps,
): Pick<Executions, 'create' | 'due' | 'skip' | 'unreachable' | 'pause' | 'cancel' | 'abandon'> {
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

    due(by, ids) {
      const toDue = steps.unlessHeld(asDue(steps.now()))
      const decide: Decide = (current, output) =>
        ownership.holdsNow(by, current.taskId) ? toDue(current, output) : null
      // Links see them from here on, so that both steps share an fsync.
      const staged = (changed: Execution[]) => queueMicrotask(() => tasks.hintQueues(changed))
      return steps.change('turn', ids, decide, { staged })
    },

    skip(by, ids, error) {
      const decide = neverStarted('SKIPPED', steps.now(), () => error)
      return steps.changeOwned(by, 'skipped', ids, steps.unlessHeld(decide))
    },

    unreachable(by, ends) {
      const { ids, error } = endsById(ends)
      const decide = neverStarted('UNREACHABLE', steps.now(), error)
      return steps.changeOwned(by, 'unreachable', ids, steps.unlessHeld(decide))
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

    abandon: (hostId, parting) =>
      steps.change(null, (tx) => tx.find('executions', 'hostId', hostId), partings[parting](steps.now())),
  }
}
