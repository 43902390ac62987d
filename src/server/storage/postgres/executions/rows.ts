import type { Execution, OutputSoFar, RunningExecution } from '../../ports/executions.ts'
import type { Progress } from '../../ports/outputs.ts'
import { batched } from '../connection/batched.ts'
import type { Database, Statement } from '../connection/database.ts'

/** Of `rsm.executions e`: what a `Row` holds. */
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

/** An execution as it was stored when it was read or written last. */
export interface Stored {
  readonly execution: Execution
  /** How often its record has changed. */
  readonly rev: number
  /** Of the link, or the member, that has it. */
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

/** The two halves of an execution's id. */
export function keyOf(id: string): { taskId: string; hostId: number } {
  const slash = id.lastIndexOf('/')
  return { taskId: id.slice(0, slash), hostId: Number(id.slice(slash + 1)) }
}

export const idOf = (taskId: string, hostId: number): string => `${taskId}/${hostId}`

/**
 * Rows of a task that one statement reads or moves: with all of 100,000 it could take longer than a statement may, and their
 * answer would keep this process from all else.
 */
export const rowsAtOnce = 2000

/**
 * Reads rows of a task in pages, in the order of the hosts. Of `statement` $1 is the task, $2 the host after which a page begins, and
 * $3 how many rows it has at most.
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

/** Whether the task runs: its end takes away all of its executions at once. */
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

/** Reads executions by their ids, what is asked meanwhile together; answers those that are there. */
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
