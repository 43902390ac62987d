import type { Hints } from '../../ports/hints.ts'
import type { Outputs } from '../../ports/outputs.ts'
import { type Database, withBriefLocks } from '../connection/database.ts'
import { type Append, createAppend } from './append.ts'
import { dayOf, isOver, isWithoutTable, tableOf } from './days.ts'
import { createReads } from './read.ts'

/** Outputs in PostgreSQL, with an append that is guarded by the records of executions. */
export interface PostgresOutputs extends Outputs {
  appendGuarded: Append
}

/** Always empty: PostgreSQL is responsible for the integrity of its data. */
const undamaged: ReadonlyMap<number, string> = new Map()

export function createPostgresOutputs(database: Database, hints: Hints): PostgresOutputs {
  const append = createAppend(database, (id) => hints.publish('output', { id }))
  return {
    appendGuarded: append,
    async append(taskId, entry) {
      await append({ taskId, entry, guard: null })
    },
    ...createReads(database),
    damages: () => undamaged,
    finish: async () => undefined,
    async size(taskId) {
      const [head] = await database.ask<{ bytes: number }>(
        'api',
        { name: 'output size', text: 'select bytes from rsm.output_heads where task_id = $1' },
        [taskId],
      )
      return head?.bytes ?? 0
    },
    forget: createForget(database),
    close: async () => undefined,
  }
}

/** Bytes from which the output of a task is removed at once; less waits for the table of its day. */
const largeOutput = 64 * 1024 * 1024
/** Pieces removed per statement, so that others do not wait long. */
const piecesAtOnce = 2000
/** Days that forgotten output waits for the other tasks of its day. */
const forgottenDays = 2
/** Overdue tasks removed per call. */
const tasksAtOnce = 20

/**
 * Removes the output of tasks, at once for readers. Large output also frees its space at once. Other output
 * waits for the last task of its day, whose table is then dropped, but at most `forgottenDays`.
 */
function createForget(database: Database): (taskId: string) => Promise<void> {
  async function removePieces(taskId: string): Promise<void> {
    const table = tableOf(taskId)
    const text = `with gone as (delete from ${table} where task_id = $1 and id in
        (select id from ${table} where task_id = $1 order by id limit ${piecesAtOnce}) returning 1)
      select count(*) as count from gone`
    for (let count = piecesAtOnce; count === piecesAtOnce; ) {
      const found = database.ask<{ count: number }>('api', text, [taskId])
      const rows = await found.catch((error: unknown) => {
        if (isWithoutTable(error)) return []
        throw error
      })
      count = rows[0]?.count ?? 0
    }
    await database.ask('api', 'delete from rsm.outputs_forgotten where task_id = $1', [taskId])
  }

  /**
   * Drops the table of a past day without tasks, or leaves it for a later call if it is in use. False if the day
   * is not over or tasks remain.
   */
  async function dropTable(taskId: string): Promise<boolean> {
    const day = dayOf(taskId)
    if (day === null || !isOver(day, Date.now())) return false
    const range = [day.from, day.to]
    const [found] = await database.ask<{ some: boolean }>(
      'api',
      'select exists (select from rsm.output_heads where task_id >= $1 and task_id < $2) as some',
      range,
    )
    if (found?.some !== false) return false
    await withBriefLocks(database, 'api', async (ask) => {
      await ask(`drop table if exists ${day.table}`)
      await ask('delete from rsm.outputs_forgotten where task_id >= $1 and task_id < $2', range)
    })
    return true
  }

  return async (taskId) => {
    const [head] = await database.ask<{ bytes: number }>(
      'api',
      `with head as (delete from rsm.output_heads where task_id = $1 returning task_id, bytes),
        noted as (insert into rsm.outputs_forgotten(task_id) select task_id from head on conflict do nothing)
      select bytes from head`,
      [taskId],
    )
    if (!head) return
    if (!(await dropTable(taskId)) && head.bytes >= largeOutput) await removePieces(taskId)
    const impatient = await database.ask<{ task_id: string }>(
      'api',
      `select task_id from rsm.outputs_forgotten where at < clock_timestamp() - make_interval(days => $1) order by at limit $2`,
      [forgottenDays, tasksAtOnce],
    )
    for (const { task_id } of impatient) if (!(await dropTable(task_id))) await removePieces(task_id)
  }
}
