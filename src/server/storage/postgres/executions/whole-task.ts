import type { Database, Statement } from '../connection/database.ts'

/**
 * Rows of a task that one statement reads or moves: with all of 100,000 it could take longer than a statement may, and their
 * answer would keep this process from all else.
 */
export const rowsAtOnce = 2000

/**
 * Reads rows of a task in pages, in the order of the hosts. Of `statement` $1 is the task, $2 the host after which a page begins, and
 * $3 how many rows it has at most.
 */
export async function readWhole<R extends { host_id: number }>(
  database: Database,
  statement: Statement,
  taskId: string,
): Promise<R[]> {
  const all: R[] = []
  for (let after = 0; ; ) {
    const page = await database.ask<R>('api', statement, [taskId, after, rowsAtOnce])
    all.push(...page)
    const last = page.at(-1)
    if (!last || page.length < rowsAtOnce) return all
    after = last.host_id
  }
}

/** Whether the task runs: its end takes away all of its executions at once. */
export async function isThere(database: Database, taskId: string): Promise<boolean> {
  const rows = await database.ask(
    'api',
    { name: 'executions is there', text: 'select 1 from rsm.executions where task_id = $1 limit 1' },
    [taskId],
  )
  return rows.length > 0
}
