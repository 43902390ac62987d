import { faultPoint } from '#fault-point'
import { phases } from '../../../../core/tasks/gates.ts'
import { lineBytes } from '../../output-line.ts'
import type { NewEntry } from '../../ports/outputs.ts'
import { batched } from '../connection/batched.ts'
import type { Database, Statement } from '../connection/database.ts'
import { isWithoutTable, makeTable, tableOf } from './days.ts'

/** Approximate bytes per statement: more would block others for longer. */
const maxBytes = 2 * 1024 * 1024
/** Bytes of a piece in addition to its text. */
export const pieceBytes = 128

/** Conditions on an execution's record for storing a piece of its output. */
export interface Guard {
  /** Epoch of the link or member that has the execution. */
  readonly epoch: number
  /** Sequence that was stored last. */
  readonly before: number
}

/** A piece of output; without a guard it is stored unconditionally. */
export interface Piece {
  readonly taskId: string
  readonly entry: NewEntry
  readonly guard: Guard | null
}

/** Resolves to true once the piece is durable, or to false if the guard failed and nothing was stored. */
export type Append = (piece: Piece) => Promise<boolean>

/** Consecutive pieces of one execution in a batch. */
interface Run extends Guard {
  readonly taskId: string
  readonly hostId: number
  last: number
  stdoutBytes: number
  stderrBytes: number
  frames: number
}

const keyOf = (taskId: string, hostId: number) => `${taskId}/${hostId}`

/**
 * Stores a batch in one statement. Advances `out_seq` of each execution from exactly the sequence before its
 * pieces to the last one. Locks the head of each task until the commit, to assign ids, and inserts the
 * pieces. Locks are taken in id order. Ids advance by the bytes of each line.
 */
const textOf = (table: string, isGuarded: boolean) => `with run as materialized (
    select * from jsonb_to_recordset($1::jsonb) as r(t text, h bigint, e bigint, b bigint, s bigint, o bigint, x bigint, n int)),
  taken as (${
    isGuarded
      ? `update rsm.executions e
    set out_seq = r.s, stdout_bytes = e.stdout_bytes + r.o, stderr_bytes = e.stderr_bytes + r.x, frames = e.frames + r.n
    from run r
    where e.task_id = r.t and e.host_id = r.h and e.out_seq = r.b and e.epoch = r.e and e.status = 'RUNNING'
    returning e.task_id, e.host_id`
      : 'select t as task_id, h as host_id from run'
  }),
  piece as materialized (
    select p.*, sum(p.line) over (partition by p.t order by p.k) as ends
    from unnest($2::text[], $3::bigint[], $4::bool[], $5::bigint[], $6::bigint[], $7::int[], $8::int[], $9::int[], $11::int[], $12::smallint[])
      with ordinality as p(t, h, is_stderr, sequence, at, bytes, start, length, line, phase, k)
    join taken on taken.task_id = p.t and taken.host_id = p.h),
  sum as materialized (select t, sum(line) as lines, sum(length + ${pieceBytes}) as bytes from piece group by t),
  head as (
    insert into rsm.output_heads as h(task_id, last, bytes) select t, lines, bytes from sum order by t
    on conflict (task_id) do update set last = h.last + excluded.last, bytes = h.bytes + excluded.bytes
    returning task_id, last),
  added as (
    insert into ${table}(task_id, id, host_id, is_stderr, sequence, at, bytes, data, phase)
    select p.t, head.last - sum.lines + p.ends, p.h, p.is_stderr, p.sequence, p.at, p.bytes,
      substr($10::bytea, p.start, p.length), p.phase
    from piece p join sum on sum.t = p.t join head on head.task_id = p.t)
  select task_id, host_id from taken`

/** Groups a batch into runs. `torn`: pieces that do not follow the previous one, because one between was refused. */
function runsOf(pieces: readonly Piece[]): { runs: Map<string, Run>; torn: Set<Piece> } {
  const runs = new Map<string, Run>()
  const torn = new Set<Piece>()
  for (const piece of pieces) {
    const { taskId, guard, entry } = piece
    const { hostId, sequence, stream, data } = entry
    const key = keyOf(taskId, hostId)
    const run = runs.get(key) ?? {
      ...(guard ?? { epoch: 0, before: 0 }),
      taskId,
      hostId,
      last: guard?.before ?? 0,
      stdoutBytes: 0,
      stderrBytes: 0,
      frames: 0,
    }
    if (guard && (run.last !== guard.before || run.epoch !== guard.epoch)) {
      torn.add(piece)
      continue
    }
    runs.set(key, run)
    run.last = sequence
    run.frames++
    run[stream === 'stdout' ? 'stdoutBytes' : 'stderrBytes'] += Buffer.byteLength(data)
  }
  return { runs, torn }
}

const inOrder = (a: Run, b: Run) =>
  a.taskId === b.taskId ? a.hostId - b.hostId : a.taskId < b.taskId ? -1 : 1

const recordOf = (run: Run) => ({
  t: run.taskId,
  h: run.hostId,
  e: run.epoch,
  b: run.before,
  s: run.last,
  o: run.stdoutBytes,
  x: run.stderrBytes,
  n: run.frames,
})

const textAsJson = ({ json, data }: NewEntry): Uint8Array => json ?? Buffer.from(JSON.stringify(data))

function valuesOf(runs: Iterable<Run>, pieces: readonly Piece[]): unknown[] {
  const texts = pieces.map(({ entry }) => textAsJson(entry))
  let start = 1
  const starts = texts.map(({ length }) => {
    const its = start
    start += length
    return its
  })
  return [
    JSON.stringify([...runs].sort(inOrder).map(recordOf)),
    pieces.map(({ taskId }) => taskId),
    pieces.map(({ entry }) => entry.hostId),
    pieces.map(({ entry }) => entry.stream === 'stderr'),
    pieces.map(({ entry }) => entry.sequence),
    pieces.map(({ entry }) => Date.parse(entry.timestamp)),
    pieces.map(({ entry }) => Buffer.byteLength(entry.data)),
    starts,
    texts.map(({ length }) => length),
    Buffer.concat(texts),
    pieces.map(({ entry }, at) => lineBytes(entry, texts[at]?.length ?? 0)),
    pieces.map(({ entry }) => phases.indexOf(entry.phase ?? 'SCRIPT')),
  ]
}

/** Appends pieces in batches, one at a time per table. `written`: called with tasks that have new output. */
export function createAppend(database: Database, written: (taskId: string) => void): Append {
  const writers = new Map<string, (piece: Piece) => Promise<boolean>>()

  async function askOnce(statement: Statement, values: unknown[], taskId: string) {
    const ask = () => database.ask<{ task_id: string; host_id: number }>('write', statement, values)
    return ask().catch(async (error: unknown) => {
      if (!isWithoutTable(error)) throw error
      await makeTable(database, taskId)
      return ask()
    })
  }

  async function write(table: string, isGuarded: boolean, pieces: readonly Piece[]): Promise<boolean[]> {
    const { runs, torn } = runsOf(pieces)
    const whole = pieces.filter((piece) => !torn.has(piece))
    const [first] = whole
    if (!first) return pieces.map(() => false)
    const statement = {
      name: `output append ${table} ${isGuarded}`,
      text: textOf(table, isGuarded),
    }
    const rows = await askOnce(statement, valuesOf(runs.values(), whole), first.taskId)
    faultPoint('server.output.written')
    const taken = new Set(rows.map(({ task_id, host_id }) => keyOf(task_id, host_id)))
    for (const taskId of new Set(rows.map(({ task_id }) => task_id))) written(taskId)
    return pieces.map((piece) => !torn.has(piece) && taken.has(keyOf(piece.taskId, piece.entry.hostId)))
  }

  return (piece) => {
    const table = tableOf(piece.taskId)
    const isGuarded = piece.guard !== null
    const key = `${table} ${isGuarded}`
    const writer =
      writers.get(key) ??
      batched(
        (pieces: readonly Piece[]) => write(table, isGuarded, pieces),
        maxBytes,
        ({ entry }) => (entry.json?.length ?? entry.data.length) + pieceBytes,
      )
    writers.set(key, writer)
    return writer(piece)
  }
}
