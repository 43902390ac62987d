import type { Execution, Executions } from '../../ports/executions.ts'
import type { Database, Statement } from '../connection/database.ts'
import { rowsAtOnce } from './rows.ts'

/** A cursor is a transaction id plus this factor times the number of failovers. */
const failover = 2 ** 44

/** Position of the query, and one change; null fields if there is none. */
interface Found {
  xmin: string
  timeline: string
  host_id?: number | null
  xid?: string | null
  rec?: Execution | null
  id?: string | null
}

/**
 * Finds changes of transactions that were not finished at the last query. The cursor is the oldest unfinished
 * transaction, so that no change is missed, whatever the order of commits. A change may be returned twice.
 * $1: the task or tasks, $2: the cursor, $3: the timeline of $2.
 */
const now = `now as materialized (
    select pg_snapshot_xmin(pg_current_snapshot()) as xmin, substring(pg_walfile_name(pg_current_wal_lsn()) for 8) as timeline)`
const place = 'now.xmin::text as xmin, now.timeline'
const from = `(case when now.timeline = coalesce($3, now.timeline) then $2 else '0' end)::xid8`

const statements = {
  /** One page, ordered by transaction and host, after host $4 of transaction $2. */
  records: {
    name: 'executions changes',
    text: `with ${now} select ${place}, c.* from now left join lateral (
      select e.host_id, e.xid::text as xid, e.rec from rsm.executions e
      where e.task_id = $1 and (e.xid, e.host_id) > (${from}, $4::bigint) order by e.xid, e.host_id limit ${rowsAtOnce}) as c on true`,
  },
  tasks: {
    name: 'executions changed tasks',
    text: `with ${now} select ${place}, t.id from now left join unnest($1::text[]) as t(id)
      on exists (select from rsm.executions e where e.task_id = t.id and e.xid >= ${from})`,
  },
} satisfies Record<string, Statement>

export function createChanges(database: Database): Pick<Executions, 'changes' | 'changedTasks'> {
  /** Transaction ids may restart lower after a failover, which invalidates earlier cursors. */
  let failovers = 0
  let timeline: string | null = null

  async function since(
    statement: Statement,
    which: string | readonly string[],
    after: number,
    ...more: readonly number[]
  ): Promise<{ rows: Found[]; cursor: number }> {
    const isOld = after !== Number.POSITIVE_INFINITY && Math.floor(after / failover) !== failovers
    // No transaction id is that high.
    const from = after === Number.POSITIVE_INFINITY ? failover : isOld ? 0 : after % failover
    const rows = await database.ask<Found>('api', statement, [which, String(from), timeline, ...more])
    const [first] = rows
    if (!first) throw new Error('a left join answers a row')
    if (timeline !== null && timeline !== first.timeline) failovers++
    timeline = first.timeline
    return { rows, cursor: failovers * failover + Number(first.xmin) }
  }

  return {
    /** Reads pages, with the latest state of each execution. Returns the cursor of the first one, so that no change is missed. */
    async changes(taskId, after) {
      const found = new Map<number, Execution>()
      // No host has id 0, so that all changes of transaction `after` are included.
      let [place, host] = [after, 0]
      let first: number | null = null
      for (;;) {
        const { rows, cursor } = await since(statements.records, taskId, place, host)
        const generation = Math.floor(cursor / failover)
        // After a failover everything is read again.
        if (first === null || Math.floor(first / failover) !== generation) first = cursor
        for (const { host_id, rec } of rows) if (host_id && rec) found.set(host_id, rec)
        const last = rows.at(-1)
        if (!last?.host_id || rows.length < rowsAtOnce)
          return { executions: [...found.values()], cursor: first }
        ;[place, host] = [generation * failover + Number(last.xid), last.host_id]
      }
    },
    async changedTasks(taskIds, after) {
      const { rows, cursor } = await since(statements.tasks, taskIds, after)
      return { taskIds: rows.flatMap(({ id }) => id ?? []), cursor }
    },
  }
}
