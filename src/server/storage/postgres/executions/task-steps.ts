import { faultPoint } from '#fault-point'
import { RsmError } from '../../../../core/errors.ts'
import { asCancelled, asDue, endsById, neverStarted, partings } from '../../executions/transitions.ts'
import { jsonbSafe } from '../../jsonb-safe.ts'
import type { Execution, Executions } from '../../ports/executions.ts'
import type { ExecutionRecord } from '../../records/task.ts'
import type { Ask } from '../connection/database.ts'
import { countText } from '../schema/running.ts'
import { columns, type Row, readPaged, storedOf } from './rows.ts'
import type { Steps } from './steps.ts'
import { holdsTask } from './write.ts'

/** Executions per statement. */
const insertedAtOnce = 5000

export function createTaskSteps(
  steps: Steps,
  cancels: Cancels,
): Pick<Executions, 'create' | 'due' | 'skip' | 'unreachable' | 'pause' | 'cancel' | 'abandon'> {
  const { database, store } = steps.deps
  return {
    async create(task, executions, also) {
      faultPoint('server.created.before')
      const other = await store.transactLocked(async (tx, ask) => {
        const answer = await also(tx)
        if (answer !== null) return answer
        tx.put('tasks', task)
        await insert(ask, executions)
        return null
      })
      faultPoint('server.created.after')
      if (other === null) {
        steps.publisher.task(task.id, 'created')
        // Only after the response to the client.
        setImmediate(() => steps.publisher.due(executions))
      }
      return other
    },

    due: (by, ids) => steps.change('turn', ids, asDue(steps.now()), { fence: by, unlessHeld: true }),

    skip(by, ids, error) {
      const decide = neverStarted('SKIPPED', steps.now(), () => error)
      return steps.change('skipped', ids, decide, { fence: by, unlessHeld: true })
    },

    unreachable(by, ends) {
      const { ids, error } = endsById(ends)
      const decide = neverStarted('UNREACHABLE', steps.now(), error)
      return steps.change('unreachable', ids, decide, { fence: by, unlessHeld: true })
    },

    async pause(by, taskId, pauseUntil) {
      faultPoint('server.paused.before')
      await store.transactLocked(async (tx, ask) => {
        const task = await tx.get('tasks', taskId)
        if (task?.status === 'RUNNING' && (await holdsTask(ask, by, taskId)))
          tx.put('tasks', { ...task, pauseUntil })
      })
      faultPoint('server.paused.after')
    },

    async cancel(taskId, how) {
      const at = steps.now()
      faultPoint('server.cancelled.before')
      await store.transactLocked(async (tx, ask) => {
        const task = await tx.get('tasks', taskId)
        if (task?.status !== 'RUNNING') throw new RsmError('conflict', `Task ${taskId} has already ended`)
        tx.put('tasks', { ...task, cancelRequestedAt: task.cancelRequestedAt ?? at })
        await cancels.note(ask, { taskId, at, error: how?.error ?? null })
      })
      const changed = await cancels.carryOut({ taskId, at, error: how?.error ?? null })
      faultPoint('server.cancelled.after')
      steps.publisher.task(taskId, 'updated')
      return changed
    },

    async abandon(hostId, parting) {
      const rows = await database.ask<Row>(
        'api',
        {
          name: 'executions open on',
          text: `select ${columns} from rsm.executions e where e.host_id = $1 and e.status in ('PENDING', 'RUNNING')`,
        },
        [hostId],
      )
      return steps.change(null, { stored: rows.map(storedOf) }, partings[parting](steps.now()))
    },
  }
}

const insertText = `with new as (
    insert into rsm.executions(task_id, host_id, position, over_ssh, rec)
    select rec->>'taskId', (rec->>'hostId')::bigint, (rec->>'position')::int, coalesce((rec->>'overSsh')::bool, false), rec
    from jsonb_array_elements($1::jsonb) as rec returning task_id, status)
  ${countText('select task_id, status, 1 from new')}`

async function insert(ask: Ask, executions: readonly ExecutionRecord[]): Promise<void> {
  for (let at = 0; at < executions.length; at += insertedAtOnce)
    await ask({ name: 'executions insert', text: insertText }, [
      jsonbSafe(executions.slice(at, at + insertedAtOnce)),
    ])
}

/** Seconds after which a cancel counts as abandoned by its server. */
const leftAfter = 10

/** A cancel in progress. */
interface Cancel {
  readonly taskId: string
  readonly at: string
  /** Null to cancel everything; otherwise cancels only pending executions, with this error. */
  readonly error: string | null
}

/**
 * Cancels tasks with many executions. The request is stored with the task's record, and from then on no
 * execution is sent. Then each execution is changed, with no lock for longer than a statement. If the server
 * dies meanwhile, another one finishes the cancel.
 */
interface Cancels {
  note(ask: Ask, cancel: Cancel): Promise<void>
  carryOut(cancel: Cancel): Promise<Execution[]>
  /** Finishes abandoned cancels of other servers. */
  sweep(): Promise<void>
}

export function createCancels(steps: Steps): Cancels {
  const { database, log } = steps.deps

  async function carryOut({ taskId, at, error }: Cancel): Promise<Execution[]> {
    const rows = await readPaged<Row & { host_id: number }>(
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
      // An earlier cancel of everything stays one of everything.
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
        [leftAfter],
      )
      for (const { task_id: taskId, at, error } of left) {
        log.warn({ taskId }, 'finishing a cancel that another server abandoned')
        await carryOut({ taskId, at, error })
      }
    },
  }
}
