import type { ResultStatus } from '../../../core/task/task.ts'
import type { Execution, Executions } from '../../seams/executions.ts'
import type { Database, Statement } from '../connection/database.ts'

/** A cursor has the number of a transaction in its lower digits, and the count of fail-overs in the higher ones. */
const failover = 2 ** 44

/** Where the look stands, and one thing that has changed; null where nothing has. */
interface Found {
  xmin: string
  timeline: string
  rec?: Execution | null
  host_id?: number | null
  status?: ResultStatus | null
  id?: string | null
}

/** Whose status is what now. */
export interface Changed {
  readonly hostId: number
  readonly status: ResultStatus
}

/**
 * What transactions have changed that were not over at the last look. The cursor is the first that is not over now: no change is
 * missed, whatever the order of the commits, and one may be answered twice. $1: the task or tasks, $2: from, $3: the timeline of $2.
 */
const now = `now as materialized (
    select pg_snapshot_xmin(pg_current_snapshot()) as xmin, substring(pg_walfile_name(pg_current_wal_lsn()) for 8) as timeline)`
const place = 'now.xmin::text as xmin, now.timeline'
const isNew = `e.xid >= (case when now.timeline = coalesce($3, now.timeline) then $2 else '0' end)::xid8`

const statements = {
  records: {
    name: 'executions changes',
    text: `with ${now} select ${place}, e.rec from now
      left join rsm.executions e on e.task_id = $1 and ${isNew}`,
  },
  statuses: {
    name: 'executions statuses',
    text: `with ${now} select ${place}, e.host_id, e.status from now
      left join rsm.executions e on e.task_id = $1 and ${isNew}`,
  },
  tasks: {
    name: 'executions changed tasks',
    text: `with ${now} select ${place}, t.id from now left join unnest($1::text[]) as t(id)
      on exists (select from rsm.executions e where e.task_id = t.id and ${isNew})`,
  },
} satisfies Record<string, Statement>

export interface Changes extends Pick<Executions, 'changes' | 'changedTasks'> {
  /** As `changes`, with no more than whose status is what. */
  statuses(taskId: string, after: number): Promise<{ changed: Changed[]; cursor: number }>
}

/** What changed in tasks since a cursor, on any server. */
export function createChanges(database: Database): Changes {
  /** After a fail-over the numbers of transactions may begin lower: cursors of before are worth nothing. */
  let failovers = 0
  let timeline: string | null = null

  async function since(
    statement: Statement,
    which: string | readonly string[],
    after: number,
  ): Promise<{ rows: Found[]; cursor: number }> {
    const isOld = after !== Number.POSITIVE_INFINITY && Math.floor(after / failover) !== failovers
    // No transaction has so high a number.
    const from = after === Number.POSITIVE_INFINITY ? failover : isOld ? 0 : after % failover
    const rows = await database.ask<Found>('api', statement, [which, String(from), timeline])
    const [first] = rows
    if (!first) throw new Error('a left join answers a row')
    if (timeline !== null && timeline !== first.timeline) failovers++
    timeline = first.timeline
    return { rows, cursor: failovers * failover + Number(first.xmin) }
  }

  return {
    async changes(taskId, after) {
      const { rows, cursor } = await since(statements.records, taskId, after)
      const executions = after === Number.POSITIVE_INFINITY ? [] : rows.flatMap(({ rec }) => rec ?? [])
      return { executions, cursor }
    },
    async statuses(taskId, after) {
      const { rows, cursor } = await since(statements.statuses, taskId, after)
      const changed = rows.flatMap(({ host_id: hostId, status }) =>
        hostId && status ? [{ hostId, status }] : [],
      )
      return { changed, cursor }
    },
    async changedTasks(taskIds, after) {
      const { rows, cursor } = await since(statements.tasks, taskIds, after)
      return { taskIds: rows.flatMap(({ id }) => id ?? []), cursor }
    },
  }
}
