import { asCancelled } from '../../executions/transitions.ts'
import type { Execution } from '../../ports/executions.ts'
import type { Ask } from '../connection/database.ts'
import { columns, type Row, storedOf } from './rows.ts'
import type { Steps } from './steps.ts'
import { readWhole } from './whole-task.ts'

/** Seconds after which a cancel that is still noted was left by its server. */
const patience = 10

/** A cancel that is under way. */
export interface Cancel {
  readonly taskId: string
  readonly at: string
  /** Null: all is cancelled; else what has not started, for this reason. */
  readonly error: string | null
}

/**
 * Cancels of tasks with many executions: the request is noted with the task's record, and from then on nothing of the task is taken.
 * Then each execution is changed, with no lock for longer than a statement; a cancel whose server ends meanwhile is another one's to
 * carry out.
 */
export interface Cancels {
  note(ask: Ask, cancel: Cancel): Promise<void>
  carryOut(cancel: Cancel): Promise<Execution[]>
  /** Carries out what a server has left. */
  sweep(): Promise<void>
}

export function createCancels(steps: Steps): Cancels {
  const { database, log } = steps.deps

  async function carryOut({ taskId, at, error }: Cancel): Promise<Execution[]> {
    const rows = await readWhole<Row & { host_id: number }>(
      database,
      {
        name: 'executions open of',
        text: `select e.host_id, ${columns} from rsm.executions e
          where e.task_id = $1 and e.status in ('PENDING', 'RUNNING') and e.host_id > $2 order by e.host_id limit $3`,
      },
      taskId,
    )
    const how = error === null ? undefined : ({ pendingOnly: true, error } as const)
    const changed = await steps.change(null, { stored: rows.map(storedOf) }, asCancelled(at, how))
    await database.ask('api', 'delete from rsm.cancels where task_id = $1 and at = $2', [taskId, at])
    return changed
  }

  return {
    async note(ask, { taskId, at, error }) {
      // A cancel of all that is under way stays one of all.
      await ask(
        `insert into rsm.cancels as c(task_id, at, error) values ($1, $2, $3)
        on conflict (task_id) do update set at = excluded.at, since = excluded.since,
          error = case when c.error is null then null else excluded.error end`,
        [taskId, at, error],
      )
    },
    carryOut,
    async sweep() {
      const left = await database.ask<{ task_id: string; at: string; error: string | null }>(
        'api',
        {
          name: 'executions cancels left',
          text: `select task_id, at, error from rsm.cancels where since < clock_timestamp() - make_interval(secs => $1)`,
        },
        [patience],
      )
      for (const { task_id: taskId, at, error } of left) {
        log.warn({ taskId }, 'a cancel that a server had left is carried out')
        await carryOut({ taskId, at, error })
      }
    },
  }
}
