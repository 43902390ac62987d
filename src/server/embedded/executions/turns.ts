import { faultPoint } from '#fault-point'
import { RsmError } from '../../../core/errors.ts'
import { asCancelled, asLost, ended } from '../../executions/transitions.ts'
import type { Execution, Executions } from '../../seams/executions.ts'
import type { Progress } from '../../seams/outputs.ts'
import type { Transaction } from '../../seams/store.ts'
import { endsById, type Steps } from './steps.ts'

/** Tasks that begin, whose hosts have their turns, and which users end. */
export function createTurns(
  steps: Steps,
): Pick<Executions, 'create' | 'due' | 'skip' | 'unreachable' | 'pause' | 'cancel' | 'abandon'> {
  const { tasks } = steps
  const { store, hints, ownership, clock } = steps.deps
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
        tasks.add(task, executions, new Map<number, Progress>(), clock.monotonic())
        hints.publish('task', { id: task.id, hostId: null, change: 'created' })
        // After the answer to whoever has asked for it.
        setImmediate(() => tasks.hintLanes(executions))
      }
      return other
    },

    due(by, ids) {
      const dueAt = steps.now()
      const decide = (current: Execution) =>
        steps.isWaiting(current) && current.dueAt === null && ownership.holdsNow(by, current.taskId)
          ? { ...current, dueAt }
          : null
      // Who takes them sees them from here on, so that both steps share an fsync.
      const staged = (changed: Execution[]) => queueMicrotask(() => tasks.hintLanes(changed))
      return steps.change('turn', ids, decide, { staged })
    },

    skip: (by, ids, error) =>
      steps.changeOwned(by, 'skipped', ids, (current) =>
        steps.isWaiting(current) ? ended(current, 'SKIPPED', steps.now(), error) : null,
      ),

    unreachable(by, ends) {
      const { ids, error } = endsById(ends)
      return steps.changeOwned(by, 'unreachable', ids, (current) =>
        steps.isWaiting(current) ? ended(current, 'UNREACHABLE', steps.now(), error(current)) : null,
      )
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
      // One step: were the request durable and not the rest, hosts would still start after a crash.
      const first = async (tx: Transaction) => {
        const task = await tx.get('tasks', taskId)
        if (task?.status !== 'RUNNING') throw finished
        tx.put('tasks', { ...task, cancelRequestedAt: task.cancelRequestedAt ?? at })
      }
      const decide = (current: Execution) => {
        if (!how) return asCancelled(current, steps.outputOf(current), at)
        return current.status === 'PENDING' ? ended(current, 'CANCELLED', at, how.error) : null
      }
      const ids = tasks.get(taskId)?.executions.map(({ id }) => id) ?? []
      const changed = await steps.change('cancelled', ids, decide, { first })
      hints.publish('task', { id: taskId, hostId: null, change: 'updated' })
      return changed
    },

    abandon(hostId) {
      const error = 'the host was deleted'
      return steps.change(
        null,
        (tx) => tx.find('executions', 'hostId', hostId),
        (current) =>
          current.status === 'PENDING'
            ? ended(current, 'UNREACHABLE', steps.now(), error)
            : asLost(current, steps.outputOf(current), steps.now(), error),
      )
    },
  }
}
