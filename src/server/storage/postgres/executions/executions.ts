import { asBegun, asOwnEnd } from '../../executions/transitions.ts'
import type { Executions } from '../../ports/executions.ts'
import { createEnds } from './ends.ts'
import { createQueries } from './queries.ts'
import { createReceiving, TaskBounds } from './receiving.ts'
import { startRefresh } from './refresh.ts'
import { createSending } from './sending.ts'
import { type ExecutionsDependencies, Steps } from './steps.ts'
import { createCancels, createTaskSteps } from './task-steps.ts'

export async function openPostgresExecutions(deps: ExecutionsDependencies): Promise<Executions> {
  const steps = new Steps(deps)
  const cancels = createCancels(steps)
  const { refresh, ...holds } = createHolds(steps)
  const { inDoubtOf, close, ...sending } = createSending(steps)
  await refresh()
  const stop = startRefresh(steps, async () => {
    await refresh()
    await cancels.sweep()
  })
  return {
    ...createTaskSteps(steps, cancels),
    /** Writes the record before connecting over SSH, so that a crash leaves the execution LOST and does not start it twice. */
    begin(by, ids) {
      const condition = { fence: by, nextEpoch: by.epoch, unlessHeld: true }
      return steps.change('sent', ids, asBegun(steps.now()), condition)
    },
    end: (by, id, end) => steps.change('settled', [id], asOwnEnd(end, steps.now()), { fence: by }),
    ...sending,
    ...createReceiving(steps, new TaskBounds(deps.store)),
    ...createEnds(steps),
    ...createQueries(steps, inDoubtOf),
    ...holds,
    async close() {
      await stop()
      await close()
    },
  }
}

interface HeldRow {
  task_id: string
}

/** Tasks held by a restore, on all servers. Statements that start or send executions check rsm.held themselves. */
function createHolds({
  deps: { database },
  held,
}: Steps): Pick<Executions, 'held' | 'hold' | 'release'> & { refresh: () => Promise<void> } {
  let writes = 0

  function replaceHeld(rows: readonly HeldRow[]): void {
    held.clear()
    for (const { task_id } of rows) held.add(task_id)
  }

  return {
    held,
    async hold(taskIds) {
      writes++
      // Hold only tasks with executions to start.
      const rows = await database.ask<HeldRow>(
        'api',
        `with new as (
          insert into rsm.held select t from unnest($1::text[]) as t
          where exists (select from rsm.executions e where e.task_id = t and e.status = 'PENDING')
          on conflict do nothing returning task_id)
        select task_id from new union select task_id from rsm.held`,
        [[...new Set(taskIds)]],
      )
      replaceHeld(rows)
      writes++
    },
    async release() {
      writes++
      await database.ask('api', 'delete from rsm.held')
      held.clear()
      writes++
    },
    async refresh() {
      const before = writes
      const rows = await database.ask<HeldRow>('api', {
        name: 'executions held',
        text: 'select task_id from rsm.held',
      })
      // A concurrent write may be newer than these rows.
      if (writes === before) replaceHeld(rows)
    },
  }
}
