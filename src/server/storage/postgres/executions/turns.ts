import { faultPoint } from '#fault-point'
import { RsmError } from '../../../../core/errors.ts'
import { asDue, endsById, neverStarted, partings } from '../../executions/transitions.ts'
import { jsonbSafe } from '../../jsonb-safe.ts'
import type { Executions } from '../../ports/executions.ts'
import type { ExecutionRecord } from '../../records/execution.ts'
import type { Ask } from '../connection/database.ts'
import type { Cancels } from './cancels.ts'
import { holdsTask } from './fence.ts'
import { columns, type Row, storedOf } from './rows.ts'
import type { Steps } from './steps.ts'

/** Executions that one statement writes. */
const rowsAtOnce = 5000

const insertText = `insert into rsm.executions(task_id, host_id, position, over_ssh, rec)
  select rec->>'taskId', (rec->>'hostId')::bigint, (rec->>'position')::int, coalesce((rec->>'overSsh')::bool, false), rec
  from jsonb_array_elements($1::jsonb) as rec`

async function insert(ask: Ask, executions: readonly ExecutionRecord[]): Promise<void> {
  for (let at = 0; at < executions.length; at += rowsAtOnce)
    await ask({ name: 'executions insert', text: insertText }, [
      jsonbSafe(executions.slice(at, at + rowsAtOnce)),
    ])
}

/** Tasks that begin, whose hosts have their turns, and which users end. */
export function createTurns(
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
        steps.tell.task(task.id, 'created')
        // After the answer to whoever has asked for it.
        setImmediate(() => steps.tell.due(executions))
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
      steps.tell.task(taskId, 'updated')
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
