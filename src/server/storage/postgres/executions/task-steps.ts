import { faultPoint } from '#fault-point'
import { RsmError } from '../../../../core/errors.ts'
import { type Counts, emptyCounts, type ResultStatus } from '../../../../core/tasks/task.ts'
import { endedTask, isNews, textsOf } from '../../executions/ends.ts'
import { asCancelled } from '../../executions/transitions.ts'
import { jsonbSafe } from '../../jsonb-safe.ts'
import type { Execution, Executions } from '../../ports/executions.ts'
import type { ExecutionRecord, TaskRecord } from '../../records/task.ts'
import type { Ask } from '../connection/database.ts'
import { remainsOf } from '../results.ts'
import { countText } from '../schema/running.ts'
import { columns, type Row, readPaged, rowsAtOnce, storedOf } from './rows.ts'
import type { Steps } from './steps.ts'
import { holdsTask } from './write.ts'

/** Executions per statement. */
const insertedAtOnce = 5000

/** Steps of whole tasks, from their creation to the results that arrive after their end. */
export function createTaskSteps(steps: Steps): Pick<
  Executions,
  'create' | 'pause' | 'cancel' | 'finish' | 'late'
> & {
  sweepCancels: () => Promise<void>
} {
  const { store } = steps.deps
  const cancels = createCancels(steps)
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
    sweepCancels: () => cancels.sweep(),
    ...createEnds(steps),
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
function createCancels(steps: Steps) {
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
    async note(ask: Ask, { taskId, at, error }: Cancel): Promise<void> {
      // An earlier cancel of everything stays one of everything.
      await ask(
        `insert into rsm.cancels as c(task_id, at, error) values ($1, $2, $3)
        on conflict (task_id) do update set at = excluded.at, since = excluded.since,
          error = case when c.error is null then null else excluded.error end`,
        [taskId, at, error],
      )
    },
    carryOut,
    /** Finishes abandoned cancels of other servers. */
    async sweep(): Promise<void> {
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

type LateResult = Parameters<Executions['late']>[2]

/**
 * Moves up to $3 executions of hosts after $2 to the results, unchanged. Returns the count of each status, and the last host
 * of each.
 */
const moveText = `with page as (
    select host_id from rsm.executions where task_id = $1 and host_id > $2 order by host_id limit $3),
  gone as (
    delete from rsm.executions e using page where e.task_id = $1 and e.host_id = page.host_id
    returning e.host_id, e.position, e.rec, e.status),
  results as (
    insert into rsm.results(task_id, host_id, position, rec) select $1, host_id, position, rec from gone)
  select status, count(*) as count, max(host_id) as last from gone group by status`

const endText = `with remains as (
    insert into rsm.remains(task_id, script, gates) values ($1, $2, $3)
    on conflict (task_id) do update set script = excluded.script, gates = excluded.gates, aside_at = null),
  cancels as (delete from rsm.cancels where task_id = $1),
  counts as (delete from rsm.execution_counts where task_id = $1)
  delete from rsm.held where task_id = $1`

const isOpenText = `select exists (
    select from rsm.executions where task_id = $1 and status in ('PENDING', 'RUNNING')) as is_open`

/** Moves all executions to the results; returns their count by status. */
async function move(ask: Ask, taskId: string): Promise<Counts> {
  const counts = emptyCounts()
  for (let after = 0, page = rowsAtOnce; page === rowsAtOnce; ) {
    const moved = await ask<{ status: ResultStatus; count: number; last: number }>(
      { name: 'executions move', text: moveText },
      [taskId, after, rowsAtOnce],
    )
    page = 0
    for (const { status, count, last } of moved) {
      counts[status] += count
      page += count
      after = Math.max(after, last)
    }
  }
  return counts
}

class StillOpen extends Error {}

/** Ends tasks: executions become results in one transaction. A late result goes to the execution or to the result. */
function createEnds({ deps, publisher }: Steps): Pick<Executions, 'finish' | 'late'> {
  const { database, store, clock } = deps

  function end(...[by, taskId, also]: Parameters<Executions['finish']>): Promise<TaskRecord | null> {
    return store.transactLocked(async (tx, ask) => {
      if (!(await holdsTask(ask, by, taskId))) return null
      const task = await tx.get('tasks', taskId)
      if (task?.status !== 'RUNNING') return null
      faultPoint('server.archived.before')
      const counts = await move(ask, taskId)
      await ask({ name: 'executions end', text: endText }, remainsOf(taskId, textsOf(task)))
      faultPoint('server.archived.after')
      const ended = endedTask(task, counts, clock.now())
      if (ended === null) throw new StillOpen()
      tx.put('tasks', ended)
      also?.(tx, ended)
      faultPoint('server.final.before')
      return ended
    })
  }

  /** Null if the task has ended, so that its executions are gone; false if the record changed since it was read. */
  async function putLate(taskId: string, hostId: number, lateResult: LateResult): Promise<boolean | null> {
    const [row] = await database.ask<Row>(
      'api',
      {
        name: 'executions late',
        text: `select ${columns} from rsm.executions e where e.task_id = $1 and e.host_id = $2`,
      },
      [taskId, hostId],
    )
    if (!row) return null
    if (!isNews(row.rec)) return true
    const updated = await database.ask(
      'api',
      {
        name: 'executions keep late',
        text: `update rsm.executions set rec = rec || $3::jsonb, rev = rev + 1, xid = pg_current_xact_id()
          where task_id = $1 and host_id = $2 and rev = $4 returning 1`,
      },
      [taskId, hostId, JSON.stringify({ lateResult }), row.rev],
    )
    return updated.length > 0
  }

  /** False if the result changed since it was read. */
  async function amend(taskId: string, hostId: number, lateResult: LateResult): Promise<boolean> {
    const [row] = await database.ask<{ rec: Execution; text: string }>(
      'api',
      {
        name: 'results late',
        text: 'select rec, rec::text as text from rsm.results where task_id = $1 and host_id = $2',
      },
      [taskId, hostId],
    )
    if (!row || !isNews(row.rec)) return true
    const amended = await database.ask(
      'api',
      {
        name: 'results amend',
        text: `update rsm.results set rec = rec || $3::jsonb
          where task_id = $1 and host_id = $2 and rec = $4::jsonb returning 1`,
      },
      [taskId, hostId, JSON.stringify({ lateResult }), row.text],
    )
    return amended.length > 0
  }

  return {
    async finish(by, taskId, also) {
      const [found] = await database.ask<{ is_open: boolean }>(
        'api',
        { name: 'executions is open', text: isOpenText },
        [taskId],
      )
      if (found?.is_open !== false) return null
      const final = await end(by, taskId, also).catch((error: unknown) => {
        if (error instanceof StillOpen) return null
        throw error
      })
      faultPoint('server.final.after')
      if (final !== null) publisher.task(taskId, 'updated')
      return final
    },
    async late(taskId, hostId, lateResult) {
      faultPoint('server.late.before')
      for (let isDone = false; !isDone; )
        isDone = (await putLate(taskId, hostId, lateResult)) ?? (await amend(taskId, hostId, lateResult))
      faultPoint('server.late.after')
    },
  }
}
