import { longestRun } from '../../../core/tasks/gates.ts'
import { Plan } from '../../../core/tasks/plan.ts'
import { isFinal, type TaskType } from '../../../core/tasks/task.ts'
import type { Execution } from '../../storage/ports/executions.ts'
import { pick } from '../../storage/records/records.ts'
import type { TaskRecord } from '../../storage/records/task.ts'
import { Watch } from './watch.ts'

/**
 * End of the current pause, if the plan is in one. Computed from the last end of the batch, because a server
 * killed before storing the pause must not restart it.
 */
function pauseUntilOf(
  { pauseUntil, pauseSeconds }: TaskRecord,
  executions: readonly Execution[],
): number | null {
  if (pauseUntil !== null) return Date.parse(pauseUntil)
  if (pauseSeconds === 0) return null
  const ends = executions.flatMap(({ completedAt }) => (completedAt ? [Date.parse(completedAt)] : []))
  return ends.reduce<number | null>((last, end) => Math.max(last ?? 0, end + pauseSeconds * 1000), null)
}

/** The plan of a task at the point stored on disk. */
export function planOf(task: TaskRecord, executions: readonly Execution[]): Plan {
  const standings = executions.map(({ status, dueAt }) => ({ status, hadTurn: dueAt !== null }))
  return new Plan(task, standings, pauseUntilOf(task, executions))
}

/** The owner's view of an execution that is RUNNING, or due and PENDING. */
export type OpenExecution = Pick<
  Execution,
  'id' | 'taskId' | 'hostId' | 'hostname' | 'status' | 'dueAt' | 'overSsh'
>

export class TaskRunner {
  readonly id: string
  readonly type: TaskType
  /** Longest possible run in seconds; 0 for unlimited. */
  readonly longest: number
  readonly queueSeconds: number | null
  readonly #ids: readonly string[]
  plan: Plan
  /** A step failed: the plan may differ from the store. */
  isStale = false
  /** Change cursor of the plan. */
  cursor = 0
  pauseUntil: string | null
  pauseTimer: NodeJS.Timeout | undefined
  retryTimer: NodeJS.Timeout | undefined
  /**
   * Monotonic milliseconds until which no host is unreachable: agents reconnect to a restarted server one by
   * one.
   */
  graceUntil = 0
  /** Open executions that run over links, by id, as far as the owner knows. */
  readonly open = new Map<string, OpenExecution>()
  /** RUNNING executions over links, by id. */
  readonly watches = new Map<string, Watch>()
  /** Monotonic milliseconds since when a due execution's host has no link, by execution id. */
  readonly awaySince = new Map<string, number>()
  /** Published reasons for silent hosts, by execution id. */
  notes = new Map<string, string>()
  polling: Promise<void> | null = null
  isHinted = false

  /** `now`: monotonic milliseconds. */
  constructor(task: TaskRecord, executions: readonly Execution[], plan: Plan, now: number) {
    this.id = task.id
    this.type = task.type
    this.longest = longestRun(task.timeout, task.gates)
    this.queueSeconds = task.queueSeconds
    this.pauseUntil = task.pauseUntil
    this.plan = plan
    this.#ids = executions.map(({ id }) => id)
    this.note(executions, now)
  }

  /** Records changed executions; `now`: monotonic milliseconds. */
  note(changed: readonly Execution[], now: number): void {
    for (const execution of changed) {
      const { id, status, dueAt, overSsh } = execution
      const isOpen = !isFinal(status) && dueAt !== null && !overSsh
      if (isOpen) this.open.set(id, pick(execution, 'id', 'taskId', 'hostId', 'hostname', 'status', 'dueAt'))
      else this.open.delete(id)
      if (!isOpen || status !== 'PENDING') this.awaySince.delete(id)
      if (isOpen && status === 'RUNNING') this.#watch(execution, now)
      else this.watches.delete(id)
    }
  }

  #watch({ id, cancelRequested }: Execution, now: number): void {
    const watch = this.watches.get(id) ?? new Watch(this.longest, now)
    watch.isCancelled = cancelRequested
    this.watches.set(id, watch)
  }

  /** Due executions waiting for their host. */
  waiting(): OpenExecution[] {
    return [...this.open.values()].filter(({ status }) => status === 'PENDING')
  }

  idsAt(positions: readonly number[]): string[] {
    return positions.flatMap((position) => this.#ids[position] ?? [])
  }
}
