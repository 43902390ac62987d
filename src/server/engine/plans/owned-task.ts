import { Plan } from '../../../core/task/plan.ts'
import type { TaskType } from '../../../core/task/task.ts'
import type { Execution } from '../../seams/executions.ts'
import type { TaskRecord } from '../../seams/records/task.ts'

/**
 * Until when the pause lasts, if there is one now (the plan knows). A server that was killed after the last end of a
 * batch, and before it noted the pause, must not begin it anew: it counts from that end.
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

/** The plan of a task as far as it has come: what is on disk decides. */
export function planOf(task: TaskRecord, executions: readonly Execution[]): Plan {
  const standings = executions.map(({ status, dueAt }) => ({ status, hadTurn: dueAt !== null }))
  return new Plan(task, standings, pauseUntilOf(task, executions))
}

/** A task whose plan this server carries out. */
export class OwnedTask {
  readonly id: string
  readonly type: TaskType
  readonly timeout: number
  readonly queueSeconds: number | null
  readonly #ids: readonly string[]
  plan: Plan
  /** What has changed up to here the plan has heard of. */
  cursor = 0
  pauseUntil: string | null
  pauseTimer: NodeJS.Timeout | undefined
  retryTimer: NodeJS.Timeout | undefined
  /** Monotonic milliseconds until which no host counts as unreachable: agents return to a restarted server one by one. */
  graceUntil = 0
  /** Monotonic milliseconds since when the host of an execution that is due has been without a link, by the execution's id. */
  readonly awaySince = new Map<string, number>()
  /** What followers were told of why a host says nothing just now, by the execution's id. */
  notes = new Map<string, string>()
  looking: Promise<void> | null = null
  isHinted = false

  constructor(task: TaskRecord, executions: readonly Execution[], plan: Plan) {
    this.id = task.id
    this.type = task.type
    this.timeout = task.timeout
    this.queueSeconds = task.queueSeconds
    this.pauseUntil = task.pauseUntil
    this.plan = plan
    this.#ids = executions.map(({ id }) => id)
  }

  idsAt(positions: readonly number[]): string[] {
    return positions.flatMap((position) => this.#ids[position] ?? [])
  }
}
