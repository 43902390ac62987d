import type { Task, TaskSummary } from '../../core/protocol/http/tasks.ts'
import {
  type Counts,
  countsOf,
  isFailure,
  isFinal,
  type ResultStatus,
  type TaskResult,
} from '../../core/tasks/task.ts'

const stageOf = (status: ResultStatus) => (status === 'PENDING' ? 0 : status === 'RUNNING' ? 1 : 2)

/** A task that has ended stays ended: data that says it runs is older, whenever it was read. */
export const isOutdated = (told: Partial<TaskSummary>, known: TaskSummary | null) =>
  told.status === 'RUNNING' && known !== null && known.status !== 'RUNNING'

/** How many hosts are in which state, as people count them. */
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

export class TaskState {
  readonly taskId: string
  summary: TaskSummary | null = null
  readonly results = new Map<number, TaskResult>()
  /** Ascends with every change of a result. */
  version = 0

  constructor(taskId: string) {
    this.taskId = taskId
  }

  get isRunning(): boolean {
    return this.summary === null || this.summary.status === 'RUNNING'
  }

  read({ results, ...summary }: Task): void {
    if (!isOutdated(summary, this.summary)) this.summary = summary
    // What was read may be older than what was told: no host goes back to where it was.
    for (const result of results) {
      const known = this.results.get(result.hostId)
      if (known === undefined || stageOf(known.status) <= stageOf(result.status)) this.result(result)
    }
  }

  change(summary: Partial<TaskSummary>): void {
    if (this.summary !== null && !isOutdated(summary, this.summary))
      this.summary = { ...this.summary, ...summary }
  }

  /** What was told, which comes in order: it may go back to PENDING where it never left the server, but an end stays. */
  result(result: TaskResult): void {
    const known = this.results.get(result.hostId)
    if (known !== undefined && isFinal(known.status) && !isFinal(result.status)) return
    this.results.set(result.hostId, result)
    this.version++
  }

  /** Counted from the results: they come before the summary does. */
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
