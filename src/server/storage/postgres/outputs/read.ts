import { phases } from '../../../../core/tasks/gates.ts'
import { isoTime } from '../../../../disk/clock.ts'
import { gateOf, lineBegin } from '../../output-line.ts'
import type {
  NewEntry,
  Outputs,
  ReadBackQuery,
  ReadQuery,
  StoredEntry,
  StoredLine,
} from '../../ports/outputs.ts'
import type { Database } from '../connection/database.ts'
import { pieceBytes } from './append.ts'
import { isWithoutTable, tableOf } from './days.ts'

/** Approximate bytes per read, to bound memory. */
const readBudget = 256 * 1024
/** Entries scanned per statement: a search for one host among millions takes several short statements. */
const entriesAtOnce = 65_536

/** An entry; all fields are null if the statement found none. */
interface Row {
  id: number | null
  host_id: number
  is_stderr: boolean
  sequence: number
  at: number
  /** Place in `phases`. */
  phase: number
  data: Buffer
}
type Entry = Row & { id: number }

type Selection = Pick<ReadQuery, 'hostId' | 'stream'>

/** Reads output; a task without output, or of a dropped day, has none. */
export function createReads(
  database: Database,
): Pick<Outputs, 'read' | 'readBefore' | 'readLines' | 'cursorBeforeLast' | 'progress'> {
  async function ask<R extends object>(
    name: string,
    taskId: string,
    textOf: (table: string) => string,
    values: readonly unknown[],
  ): Promise<R[]> {
    const table = tableOf(taskId)
    const statement = { name: `output ${name} ${table}`, text: textOf(table) }
    return database.ask<R>('api', statement, [taskId, ...values]).catch((error: unknown) => {
      if (isWithoutTable(error)) return []
      throw error
    })
  }

  /** Reads entries after a cursor; searches to the end if none matches. */
  async function after(
    taskId: string,
    query: ReadQuery,
  ): Promise<{ entries: readonly Entry[]; next: number }> {
    const isFiltered = query.hostId !== undefined || query.stream !== undefined
    for (let from = query.after; ; ) {
      const rows = await ask<Row & { last: number; until: number }>(
        isFiltered ? 'search' : 'read',
        taskId,
        (table) => forwards(table, isFiltered),
        [from, ...selectionOf(query), query.limit],
      )
      const [first] = rows
      if (!first) return { entries: [], next: from }
      const entries = entriesOf(rows)
      const end = Math.max(from, first.until)
      if (entries.length > 0)
        return { entries, next: isCut(entries, query.limit) ? (entries.at(-1)?.id ?? end) : end }
      if (end >= first.last) return { entries, next: end }
      from = end
    }
  }

  async function before(taskId: string, query: ReadBackQuery) {
    const values = [query.before, ...selectionOf(query), query.limit]
    const rows = await ask<Row & { first: number; low: number; high: number }>(
      'back',
      taskId,
      backwards,
      values,
    )
    const [window] = rows
    if (!window) return { entries: [], next: 0, previous: 0 }
    const entries = entriesOf(rows)
    const lowest = isCut(entries, query.limit) ? (entries[0]?.id ?? 0) : window.low
    return {
      entries: entries.map(decoded),
      next: window.high,
      previous: lowest <= window.first ? 0 : lowest,
    }
  }

  return {
    async read(taskId, query) {
      const { entries, next } = await after(taskId, query)
      return { entries: entries.map(decoded), next }
    },
    readBefore: (taskId, query) => before(taskId, query),
    async readLines(taskId, query) {
      const { entries, next } = await after(taskId, query)
      return { lines: entries.map(lineOf), next }
    },
    async cursorBeforeLast(taskId, count, query) {
      if (count <= 0) return (await ask<{ last: number }>('end', taskId, () => lastId, []))[0]?.last ?? 0
      let left = count
      for (let below = Number.MAX_SAFE_INTEGER; ; ) {
        const values = [below, ...selectionOf(query), left - 1]
        const [row] = await ask<{ low: number; at: number | null; found: number }>(
          'count',
          taskId,
          countingBack,
          values,
        )
        if (!row) return 0
        if (row.at !== null) return row.at - 1
        if (row.low === 0) return 0
        left -= row.found
        below = row.low
      }
    },
    async progress(taskId) {
      const rows = await ask<{
        host_id: number
        sequence: number
        frames: number
        stdout: string
        stderr: string
      }>('progress', taskId, progress, [])
      return new Map(
        rows.map(({ host_id, sequence, frames, stdout, stderr }) => [
          host_id,
          {
            lastSequence: sequence,
            stdoutBytes: Number(stdout),
            stderrBytes: Number(stderr),
            frames,
          },
        ]),
      )
    },
  }
}

const selectionOf = ({ hostId, stream }: Selection) => [
  hostId ?? null,
  stream === undefined ? null : stream === 'stderr',
]

const entriesOf = (rows: readonly Row[]) => rows.filter((row): row is Entry => row.id !== null)

/** Whether the limit or the budget may have cut off entries. */
function isCut(entries: readonly Entry[], limit: number): boolean {
  const bytes = entries.reduce((sum, { data }) => sum + data.length + pieceBytes, 0)
  return entries.length >= limit || bytes >= readBudget
}

const headOf = ({ host_id: hostId, is_stderr, sequence, at, phase }: Entry) => ({
  hostId,
  stream: is_stderr ? ('stderr' as const) : ('stdout' as const),
  sequence,
  timestamp: isoTime(at),
  ...phaseAt(phase),
})

export function phaseAt(place: number): Pick<NewEntry, 'phase'> {
  const phase = gateOf(phases[place])
  return phase === undefined ? {} : { phase }
}

function lineOf(row: Entry): StoredLine {
  const begin = Buffer.from(lineBegin(headOf(row)))
  return { id: row.id, hostId: row.host_id, json: Buffer.concat([begin, row.data, Buffer.from('}')]) }
}

function decoded(row: Entry): StoredEntry {
  return { id: row.id, ...headOf(row), data: JSON.parse(row.data.toString('utf8')) as NewEntry['data'] }
}

// $1: the task, $2: the cursor, $3: the host or null, $4: whether stderr, or null for both.
const selected = 'and ($3::bigint is null or host_id = $3) and ($4::bool is null or is_stderr = $4)'

/** Limits `wanted` to $5 entries in this order, and to the budget. */
const bounded = (
  wanted: string,
  order: string,
) => `select id, host_id, is_stderr, sequence, at, phase, data from (
      select w.*, sum(octet_length(data) + ${pieceBytes}) over (order by ${order}) - octet_length(data) - ${pieceBytes} as before
      from (${wanted} order by ${order} limit $5) w) b
    where before < ${readBudget}`

/** Id at which the part scanned by one statement ends. */
const edge = (table: string, side: string, order: string) =>
  `select id from ${table} where task_id = $1 and ${side} order by ${order} offset ${entriesAtOnce - 1} limit 1`

/** `last`: end of the log; `until`: end of the scanned part. No row if the task has no output, otherwise at least one. */
const forwards = (table: string, isFiltered: boolean): string => {
  const until = isFiltered ? `coalesce((${edge(table, 'id > $2', 'id')}), h.last)` : 'h.last'
  const filter = isFiltered ? selected : 'and $3::bigint is null and $4::bool is null'
  const wanted = `select * from ${table} where task_id = $1 and id > $2 and id <= p.until ${filter}`
  return `select h.last, p.until, e.* from rsm.output_heads h cross join lateral (select ${until} as until) p
    left join lateral (${bounded(wanted, 'id')}) e on true
    where h.task_id = $1 order by e.id`
}

/** `first`: first id of the log; `low` and `high`: ids of the scanned part. Rows as in `forwards`. */
const backwards = (table: string): string => {
  const wanted = `select * from ${table} where task_id = $1 and id >= p.low and id < $2 ${selected}`
  return `select p.first, p.low, p.high, e.* from rsm.output_heads h cross join lateral (select
      coalesce((select min(id) from ${table} where task_id = $1), 0) as first,
      coalesce((${edge(table, 'id < $2', 'id desc')}), 0) as low,
      coalesce((select max(id) from ${table} where task_id = $1 and id < $2), 0) as high) p
    left join lateral (${bounded(wanted, 'id desc')}) e on true
    where h.task_id = $1 order by e.id`
}

/** Id of the matching entry $5 before the last one below the cursor; null if there are only `found`. */
const countingBack = (table: string): string => {
  const wanted = `from ${table} where task_id = $1 and id >= p.low and id < $2 ${selected}`
  return `select p.low, (select id ${wanted} order by id desc offset $5 limit 1) as at, (select count(*) ${wanted}) as found
    from rsm.output_heads h
    cross join lateral (select coalesce((${edge(table, 'id < $2', 'id desc')}), 0) as low) p
    where h.task_id = $1`
}

const lastId = 'select last from rsm.output_heads where task_id = $1'

const progress = (table: string): string => `select host_id, max(sequence) as sequence, count(*) as frames,
    coalesce(sum(bytes) filter (where not is_stderr), 0) as stdout, coalesce(sum(bytes) filter (where is_stderr), 0) as stderr
  from ${table} where task_id = $1 group by host_id`
