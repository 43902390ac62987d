import type { TaskEvent } from '../../client/watch.ts'
import type { Task, TaskSummary } from '../../core/protocol/http/tasks.ts'
import type { Counts, TaskResult } from '../../core/tasks/task.ts'
import { tallyOf } from './task-state.ts'

/** A task as the events so far describe it: for progress, and for when the server can no longer be asked. */
export class KnownTask {
  readonly #results = new Map<number, TaskResult>()
  #task: Partial<Task> = {}

  event(event: TaskEvent): void {
    if (event.type === 'host') this.#results.set(event.result.hostId, event.result)
    if (event.type === 'task' || event.type === 'end') this.#task = { ...this.#task, ...event.task }
  }

  get counts(): Counts | undefined {
    return this.#task.counts
  }

  get isTransfer(): boolean {
    return this.#task.type === 'COPY' || this.#task.type === 'FETCH'
  }

  /** How far its files are. */
  get transfer(): TaskSummary['transfer'] {
    return this.#task.transfer
  }

  /** The whole task; undefined before the server has told of it. Hosts of which nothing was heard are not among the results. */
  get task(): Task | undefined {
    const { taskId, results } = this.#task
    if (taskId === undefined) return undefined
    return { ...(this.#task as Task), results: results ?? [...this.#results.values()] }
  }
}

/** `3/50 done, 1 failed, 46 running, 1 waiting`. */
export function progressText(counts: Counts): string {
  const { all, done, failed, running, pending } = tallyOf(counts)
  const parts = [`${done}/${all} done`]
  if (failed > 0) parts.push(`${failed} failed`)
  if (running > 0) parts.push(`${running} running`)
  if (pending > 0) parts.push(`${pending} waiting`)
  return parts.join(', ')
}
