import type { TaskEvent } from '../../client/watch.ts'
import type { Task, TaskSummary } from '../../core/protocol/http/tasks.ts'
import {
  type Counts,
  countsOf,
  isFailure,
  isFinal,
  type ResultStatus,
  resultStatuses,
  type TaskResult,
} from '../../core/tasks/task.ts'

/** Statuses in the order of `countsText`: successes first. */
const countsOrder = ['SUCCESS', ...resultStatuses.filter((status) => status !== 'SUCCESS')] as const

export class TaskState {
  readonly taskId: string
  summary: TaskSummary | null = null
  readonly results = new Map<number, TaskResult>()
  /** Incremented with each change of a result. */
  version = 0

  constructor(taskId: string) {
    this.taskId = taskId
  }

  get isRunning(): boolean {
    return this.summary === null || this.summary.status === 'RUNNING'
  }

  read({ results, ...summary }: Task): void {
    if (!isOutdated(summary, this.summary)) this.summary = summary
    // A response may be older than events, so a host never moves back.
    for (const result of results) {
      const known = this.results.get(result.hostId)
      if (known === undefined || stageOf(known.status) <= stageOf(result.status)) this.result(result)
    }
  }

  change(summary: Partial<TaskSummary>): void {
    if (this.summary !== null && !isOutdated(summary, this.summary))
      this.summary = { ...this.summary, ...summary }
  }

  /** Applies an event, in order. A host returns to PENDING if its frame was never sent, but an end stays. */
  result(result: TaskResult): void {
    const known = this.results.get(result.hostId)
    if (known !== undefined && isFinal(known.status) && !isFinal(result.status)) return
    this.results.set(result.hostId, result)
    this.version++
  }

  /** Counted from the results, which arrive before the summary. */
  counts(): Counts {
    return countsOf(this.results.values())
  }

  tally() {
    return tallyOf(this.counts())
  }

  elapsed(now: number): number {
    const { summary } = this
    if (summary === null) return 0
    if (summary.duration !== null && summary.status !== 'RUNNING') return summary.duration
    return Math.max(0, now - Date.parse(summary.startedAt ?? summary.createdAt))
  }
}

const stageOf = (status: ResultStatus) => (status === 'PENDING' ? 0 : status === 'RUNNING' ? 1 : 2)

/** A final task stays final: data that says it runs is older. */
export const isOutdated = (incoming: Partial<TaskSummary>, known: TaskSummary | null) =>
  incoming.status === 'RUNNING' && known !== null && known.status !== 'RUNNING'

/** Hosts per state, as shown to people. */
export function tallyOf(counts: Counts) {
  const sum = (fits: (status: ResultStatus) => boolean) =>
    (Object.keys(counts) as ResultStatus[]).filter(fits).reduce((total, status) => total + counts[status], 0)
  return {
    all: sum(() => true),
    done: sum(isFinal),
    failed: sum(isFailure),
    running: counts.RUNNING,
    pending: counts.PENDING,
    stopped: counts.CANCELLED + counts.SKIPPED,
    success: counts.SUCCESS,
  }
}

/** A task as reconstructed from events: for progress, and in case the server becomes unreachable. */
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

  get transfer(): TaskSummary['transfer'] {
    return this.#task.transfer
  }

  /** The whole task; undefined before the server reported it. Omits hosts without an event. */
  get task(): Task | undefined {
    const { taskId, results } = this.#task
    if (taskId === undefined) return undefined
    return { ...(this.#task as Task), results: results ?? [...this.#results.values()] }
  }
}

/** `2 SUCCESS, 1 FAILED`, always in the same order. */
export function countsText(counts: Partial<Counts>): string {
  return countsOrder
    .flatMap((status) => ((counts[status] ?? 0) > 0 ? [`${counts[status]} ${status}`] : []))
    .join(', ')
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
