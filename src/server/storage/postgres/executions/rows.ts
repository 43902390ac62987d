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

export const withStoredOutput = (stored: Stored): RunningExecution => ({
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
