import type { TaskEvent } from '../../client/watch.ts'
import type { Counts, ResultStatus, Task, TaskResult } from '../../core/protocol/http/tasks.ts'
import { isFailure, isFinal } from '../../core/task/task-state.ts'

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

  /** The whole task; undefined before the server has told of it. Hosts of which nothing was heard are not among the results. */
  get task(): Task | undefined {
    const { taskId, results } = this.#task
    if (taskId === undefined) return undefined
    return { ...(this.#task as Task), results: results ?? [...this.#results.values()] }
  }
}

/** `3/50 done, 1 failed, 46 running, 1 waiting`. */
export function progressText(counts: Counts): string {
  const statuses = Object.keys(counts) as ResultStatus[]
  const sum = (counted: readonly ResultStatus[]) =>
    counted.reduce((total, status) => total + counts[status], 0)
  const failed = sum(statuses.filter(isFailure))
  const parts = [`${sum(statuses.filter(isFinal))}/${sum(statuses)} done`]
  if (failed > 0) parts.push(`${failed} failed`)
  if (counts.RUNNING > 0) parts.push(`${counts.RUNNING} running`)
  if (counts.PENDING > 0) parts.push(`${counts.PENDING} waiting`)
  return parts.join(', ')
}
