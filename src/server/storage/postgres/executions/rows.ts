import { isFinal } from '../../../../core/tasks/task.ts'
import { LiveOutput } from '../../executions/live-output.ts'
import type { Execution, OutputSoFar, RunningExecution } from '../../ports/executions.ts'
import type { Progress } from '../../ports/outputs.ts'
import { batched } from '../connection/batched.ts'
import type { Database, Statement } from '../connection/database.ts'

/** Columns of `rsm.executions e` for a `Row`. */
export const columns = 'e.rec, e.rev, e.epoch, e.out_seq, e.stdout_bytes, e.stderr_bytes, e.frames'

export interface Row {
  rec: Execution
  rev: number
  epoch: number | null
  out_seq: number
  stdout_bytes: number
  stderr_bytes: number
  frames: number
}

/** An execution as last read or written. */
export interface Stored {
  readonly execution: Execution
  /** Number of changes of the record. */
  readonly rev: number
  /** Epoch of the link or member that has it. */
  readonly epoch: number | null
  readonly progress: Progress
}

export function storedOf({
  rec,
  rev,
  epoch,
  out_seq: lastSequence,
  stdout_bytes,
  stderr_bytes,
  frames,
}: Row): Stored {
  const progress = { lastSequence, stdoutBytes: stdout_bytes, stderrBytes: stderr_bytes, frames }
  return { execution: rec, rev, epoch, progress }
}

export function outputOf({ execution, progress }: Stored): OutputSoFar {
  const { lastSequence: storedSequence, stdoutBytes, stderrBytes } = progress
  return { storedSequence, stdoutBytes, stderrBytes, truncated: execution.truncated, incomplete: false }
}

const withStoredOutput = (stored: Stored): RunningExecution => ({
  execution: stored.execution,
  output: outputOf(stored),
})

export function keyOf(id: string): { taskId: string; hostId: number } {
  const slash = id.lastIndexOf('/')
  return { taskId: id.slice(0, slash), hostId: Number(id.slice(slash + 1)) }
}

export const idOf = (taskId: string, hostId: number): string => `${taskId}/${hostId}`

/** Rows of a task per statement: all 100,000 could exceed the statement timeout and block the process. */
export const rowsAtOnce = 2000

/**
 * Reads rows of a task in pages, ordered by host. Parameters of `statement`: $1 the task, $2 the last host of
 * the previous page, $3 the page size.
 */
export async function readPaged<R extends { host_id: number }>(
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

/** Whether the task runs: its end removes all of its executions at once. */
export async function isThere(database: Database, taskId: string): Promise<boolean> {
  const rows = await database.ask(
    'api',
    { name: 'executions is there', text: 'select 1 from rsm.executions where task_id = $1 limit 1' },
    [taskId],
  )
  return rows.length > 0
}

const readManyText = `select ${columns} from unnest($1::text[], $2::bigint[]) as i(t, h)
  join rsm.executions e on e.task_id = i.t and e.host_id = i.h`

/** Reads executions by id, in batches; omits missing ones. */
export function createReadMany(database: Database): (ids: readonly string[]) => Promise<Stored[]> {
  const read = batched(
    async (asked: readonly (readonly string[])[]) => {
      const keys = [...new Set(asked.flat())].map(keyOf)
      const rows = await database.ask<Row>('write', { name: 'executions read', text: readManyText }, [
        keys.map(({ taskId }) => taskId),
        keys.map(({ hostId }) => hostId),
      ])
      const found = new Map(rows.map((row) => [row.rec.id, storedOf(row)]))
      return asked.map((ids) => ids.flatMap((id) => found.get(id) ?? []))
    },
    rowsAtOnce,
    ({ length }) => length,
  )
  return async (ids) => {
    const pieces: Promise<Stored[]>[] = []
    for (let at = 0; at < ids.length; at += rowsAtOnce) pieces.push(read(ids.slice(at, at + rowsAtOnce)))
    return (await Promise.all(pieces)).flat()
  }
}

/** An execution that this server has, by a link or over SSH, with state that only this server knows. */
export interface ClaimedRow {
  stored: Stored
  /** Epoch of the link or member; guards writes for the execution. */
  readonly epoch: number
  output: LiveOutput
  /** Last sequence handed to `outputs`, stored or not. */
  queued: number
  /** Whether the agent has confirmed receipt, which may not be stored yet. */
  isReceived: boolean
  /** Read in flight, shared by its callers; null if none. */
  reading: Promise<unknown> | null
  /** Reread after a chunk was not stored: whether the execution has ended. Null if all were stored. */
  torn: Promise<boolean> | null
}

/** Cache of the claimed rows of this server; other servers may have changed them since. */
export class ClaimedRows {
  readonly #all = new Map<string, ClaimedRow>()

  get size(): number {
    return this.#all.size
  }

  get(id: string): ClaimedRow | undefined {
    return this.#all.get(id)
  }

  values(): Iterable<ClaimedRow> {
    return this.#all.values()
  }

  /** Adds a row that was just claimed or taken over; its output continues after what is stored. */
  take(stored: Stored): ClaimedRow {
    const { execution, epoch, progress } = stored
    const output = new LiveOutput(progress, execution.truncated)
    const own: ClaimedRow = {
      stored,
      epoch: epoch ?? 0,
      output,
      queued: progress.lastSequence,
      isReceived: execution.named,
      reading: null,
      torn: null,
    }
    this.#all.set(execution.id, own)
    return own
  }

  /** Updates the claimed row; evicts it if it ended, was requeued or went to another link. */
  note(stored: Stored): void {
    const { id, status } = stored.execution
    const own = this.#all.get(id)
    // Ignore a stale row: `rev` and `epoch` never decrease.
    if (!own || stored.rev < own.stored.rev || (stored.epoch ?? 0) < own.epoch) return
    if (isFinal(status) || status === 'PENDING' || stored.epoch !== own.epoch) this.#all.delete(id)
    else own.stored = stored
  }

  drop(id: string): void {
    this.#all.delete(id)
  }

  /** Merges a stored row with newer state of this server. */
  withOutput(stored: Stored): RunningExecution {
    const own = this.#all.get(stored.execution.id)
    if (!own || own.epoch !== stored.epoch) return withStoredOutput(stored)
    const newer = own.stored.rev > stored.rev ? own.stored : stored
    const { execution } = newer
    return { execution: own.isReceived ? { ...execution, named: true } : execution, output: own.output }
  }
}
