import type { Executions } from '../../ports/executions.ts'
import type { Steps } from './steps.ts'

interface Row {
  task_id: string
}

/** Tasks that a restore holds, on all servers: what takes or gives turns looks at the table in the same step. */
export function createHolds({
  deps: { database },
  held,
}: Steps): Pick<Executions, 'held' | 'hold' | 'release'> & { look: () => Promise<void> } {
  let writes = 0

  function know(rows: readonly Row[]): void {
    held.clear()
    for (const { task_id } of rows) held.add(task_id)
  }

  return {
    held,
    async hold(taskIds) {
      writes++
      // None but those that have something to start.
      const rows = await database.ask<Row>(
        'api',
        `with new as (
          insert into rsm.held select t from unnest($1::text[]) as t
          where exists (select from rsm.executions e where e.task_id = t and e.status = 'PENDING')
          on conflict do nothing returning task_id)
        select task_id from new union select task_id from rsm.held`,
        [[...new Set(taskIds)]],
      )
      know(rows)
      writes++
    },
    async release() {
      writes++
      await database.ask('api', 'delete from rsm.held')
      held.clear()
      writes++
    },
    async look() {
      const before = writes
      const rows = await database.ask<Row>('api', {
        name: 'executions held',
        text: 'select task_id from rsm.held',
      })
      // Else it may have been read before that.
      if (writes === before) know(rows)
    },
  }
}
