import { BoundedMap } from '../../../../core/bounded-map.ts'
import { type Counts, emptyCounts, type ResultStatus } from '../../../../core/tasks/task.ts'
import type { Database } from '../connection/database.ts'
import type { Changes } from './changes.ts'
import { isThere, readWhole } from './whole-task.ts'

/** Executions of a task from which on its counts are kept, as counting them takes longer than a look at what has changed. */
const many = 1000
/** Tasks whose counts are kept. */
const mostKept = 32

interface Kept {
  readonly cursor: number
  readonly statuses: Map<number, ResultStatus>
}

/** How many executions of a task are in each status. Of large tasks what has changed since is read. */
export function createCounts(
  database: Database,
  changes: Changes,
): (taskId: string) => Promise<Counts | null> {
  const kept = new BoundedMap<string, Kept>(mostKept)
  const large = new Set<string>()

  async function count(taskId: string): Promise<Counts | null> {
    const rows = await database.ask<{ status: ResultStatus; count: number }>(
      'api',
      {
        name: 'executions counts',
        text: 'select status, count(*) as count from rsm.executions where task_id = $1 group by status',
      },
      [taskId],
    )
    if (rows.length === 0) return null
    const counts = emptyCounts()
    let all = 0
    for (const { status, count } of rows) {
      counts[status] = count
      all += count
    }
    if (all >= many) large.add(taskId)
    return counts
  }

  /** The cursor is read first: what changes meanwhile is read again. */
  async function begin(taskId: string): Promise<Kept> {
    const { cursor } = await changes.changes(taskId, Number.POSITIVE_INFINITY)
    const rows = await readWhole<{ host_id: number; status: ResultStatus }>(
      database,
      {
        name: 'executions all statuses',
        text: `select host_id, status from rsm.executions
          where task_id = $1 and host_id > $2 order by host_id limit $3`,
      },
      taskId,
    )
    return { cursor, statuses: new Map(rows.map(({ host_id, status }) => [host_id, status])) }
  }

  async function look(taskId: string): Promise<Counts | null> {
    const before = kept.get(taskId) ?? (await begin(taskId))
    const { changed, cursor } = await changes.statuses(taskId, before.cursor)
    for (const { hostId, status } of changed) before.statuses.set(hostId, status)
    if (!(await isThere(database, taskId))) {
      kept.delete(taskId)
      large.delete(taskId)
      return null
    }
    kept.set(taskId, { cursor, statuses: before.statuses })
    const counts = emptyCounts()
    for (const status of before.statuses.values()) counts[status]++
    return counts
  }

  return (taskId) => (large.has(taskId) ? look(taskId) : count(taskId))
}
