import type { AuditHead } from '../../../../core/audit.ts'
import type { TaskResult } from '../../../../core/tasks/task.ts'
import { isoTime } from '../../../../disk/clock.ts'
import { resultOf } from '../../executions/shown.ts'
import { readFiles } from '../../migrate/files.ts'
import type { Items, OutputPiece, Reader } from '../../migrate/kinds.ts'
import type { FileRecord } from '../../records/file.ts'
import type { HostRecord } from '../../records/host.ts'
import { type AnyRecord, type Id, type Noun, nouns } from '../../records/records.ts'
import type { RunRecord } from '../../records/run.ts'
import type { ScriptRecord } from '../../records/script.ts'
import type { TaskRecord } from '../../records/task.ts'
import { encodeSample } from '../../samples/sample-line.ts'
import { rawRows } from '../audit/rows.ts'
import type { Ask, Database } from '../connection/database.ts'
import { columns, type Row, storedOf } from '../executions/rows.ts'
import { createFiles } from '../files.ts'
import { decodeIds } from '../hints/lines.ts'
import { dayOf, readSamples } from '../history/stored.ts'
import { phaseAt } from '../outputs/read.ts'
import { readHeard, readHosts } from '../presence/table.ts'
import { readChunks, verifyChunks } from '../recordings/recordings.ts'
import { type Texts, textsIn } from '../results.ts'
import { createIds } from '../store/open-transaction.ts'
import { numbered, tableOf } from '../store/tables.ts'

/** Rows of one page: of records, and of pieces of output, which may be large. */
const rowsAtOnce = 1000
const piecesAtOnce = 250
/** Results of one page, about. */
const resultsAtOnce = 5000

/** What is read of a store that no server uses. */
interface Place {
  readonly database: Database
  readonly ask: Ask
}

/** Page after page, until one is empty; each follows on the last row of the one before. */
async function* paged<R>(ask: (last: R | null) => Promise<R[]>): AsyncGenerator<R> {
  for (let last: R | null = null; ; ) {
    const rows: R[] = await ask(last)
    yield* rows
    const next = rows.at(-1)
    if (next === undefined) return
    last = next
  }
}

interface Kept {
  readonly id: Id
  readonly rec: AnyRecord
  readonly progress: number
}

function rowsOf({ ask }: Place, noun: Exclude<Noun, 'executions'>): AsyncGenerator<Kept> {
  const { idType } = tableOf(noun)
  const progress = noun === 'runs' ? 'progress' : '0::bigint as progress'
  const text = `select id, rec, ${progress} from rsm.${noun} where $1::${idType} is null or id > $1 order by id limit ${rowsAtOnce}`
  return paged((last) => ask<Kept>(text, [last?.id ?? null]))
}

/** The marks of a start are counted beside its record. */
const ended = (run: RunRecord, progress: number): RunRecord => ({
  ...run,
  last: Math.max(run.last ?? 0, progress),
})

async function* recordsOf(place: Place): AsyncGenerator<Items['records']> {
  for (const noun of nouns) {
    if (noun === 'executions') continue
    for await (const { rec, progress } of rowsOf(place, noun))
      yield { noun, record: noun === 'runs' ? ended(rec as RunRecord, progress) : rec }
  }
}

async function* identityOf({ ask }: Place): AsyncGenerator<Items['identity']> {
  const ids = createIds()
  const lastIds: Partial<Record<Noun, number>> = {}
  for (const noun of numbered) {
    const last = await ids.last(ask, noun)
    if (last > 0) lastIds[noun] = last
  }
  const [row] = await ask<{ store_id: string | null }>('select store_id from rsm.cluster')
  yield { storeId: row?.store_id ?? '', lastIds }
}

async function* executionsOf({ ask }: Place): AsyncGenerator<Items['executions']> {
  const rows = paged<Row>((last) =>
    ask<Row>(
      `select ${columns} from rsm.executions e where $1::text is null or (task_id, host_id) > ($1, $2::bigint)
      order by task_id, host_id limit ${rowsAtOnce}`,
      [last?.rec.taskId ?? null, last?.rec.hostId ?? 0],
    ),
  )
  for await (const row of rows) {
    const { execution, progress } = storedOf(row)
    yield { execution, progress: execution.overSsh ? null : progress }
  }
}

/** Ids of tasks, as many as have about so many hosts together. */
async function* tasksOf(place: Place): AsyncGenerator<string[]> {
  let ids: string[] = []
  let hosts = 0
  for await (const { rec } of rowsOf(place, 'tasks')) {
    const { id, hostCount } = rec as TaskRecord
    ids.push(id)
    hosts += hostCount
    if (hosts < resultsAtOnce) continue
    yield ids
    ids = []
    hosts = 0
  }
  yield ids
}

async function* resultsOf(place: Place): AsyncGenerator<Items['results']> {
  for await (const ids of tasksOf(place)) {
    const texts = await place.ask<Texts & { task_id: string }>(
      'select task_id, script, gates from rsm.remains where task_id = any($1) and aside_at is null order by task_id',
      [ids],
    )
    const results = new Map<string, TaskResult[]>(texts.map(({ task_id }) => [task_id, []]))
    const rows = await place.ask<{ task_id: string; rec: TaskResult }>(
      'select task_id, rec from rsm.results where task_id = any($1) order by task_id, position',
      [ids],
    )
    for (const { task_id, rec } of rows) results.get(task_id)?.push(resultOf(rec))
    for (const { task_id: taskId, ...its } of texts)
      yield { taskId, ...textsIn(its), results: results.get(taskId) ?? [] }
  }
}

async function* versionsOf(place: Place): AsyncGenerator<Items['versions']> {
  for await (const { id } of rowsOf(place, 'scripts')) {
    const text =
      'select rec from rsm.script_versions where script_id = $1 and aside_at is null order by version'
    for (const { rec } of await place.ask<{ rec: ScriptRecord }>(text, [id])) yield rec
  }
}

async function idsOf(place: Place, noun: 'tasks' | 'terminals'): Promise<Set<string>> {
  const ids = new Set<string>()
  for await (const { id } of rowsOf(place, noun)) ids.add(String(id))
  return ids
}

interface Piece {
  task_id: string
  id: number
  host_id: number
  is_stderr: boolean
  sequence: number
  at: number
  phase: number
  data: Buffer
}

async function* outputOf(place: Place): AsyncGenerator<OutputPiece> {
  // What is left of others waits for its table to go.
  const known = await idsOf(place, 'tasks')
  const rows = paged<Piece>((last) =>
    place.ask<Piece>(
      `select task_id, id, host_id, is_stderr, sequence, at, phase, data from rsm.outputs
      where task_id >= $1 and (task_id, id) > ($1, $2::bigint) order by task_id, id limit ${piecesAtOnce}`,
      [last?.task_id ?? '', last?.id ?? 0],
    ),
  )
  for await (const { task_id: taskId, id, host_id: hostId, is_stderr, sequence, at, phase, data } of rows)
    if (known.has(taskId)) {
      const stream = is_stderr ? 'stderr' : 'stdout'
      yield { taskId, id, hostId, stream, sequence, at, ...phaseAt(phase), json: data }
    }
}

async function* recordingsOf(place: Place): AsyncGenerator<Items['recordings']> {
  const known = await idsOf(place, 'terminals')
  const rows = await place.ask<{ key: number; id: string; bytes: number }>(
    'select key, id, bytes from rsm.recordings where aside is null order by id collate "C"',
  )
  for (const { key, id, bytes } of rows) {
    if (!known.has(id)) continue
    await verifyChunks(place.database, { key, session: id }, bytes)
    yield { id, bytes }
    yield* readChunks(place.database, { key, session: id }, bytes)
  }
}

async function* fileRecordsOf(place: Place): AsyncGenerator<FileRecord> {
  for await (const { rec } of rowsOf(place, 'files')) yield rec as FileRecord
}

async function headOf(ask: Ask): Promise<AuditHead> {
  const [head] = await ask<AuditHead>('select id, hash from rsm.audit_head')
  if (!head) throw new Error('rsm.audit_head has one row from the first migration on')
  return head
}

async function* headsOf({ ask }: Place): AsyncGenerator<Items['heads']> {
  const [noted] = await ask<AuditHead>('select id, hash from rsm.audit_noted')
  yield { head: await headOf(ask), noted: noted ?? null }
}

async function* presenceOf(place: Place): AsyncGenerator<Items['presence']> {
  const { database } = place
  const hosts = new Map<number, HostRecord>()
  for await (const { id, rec } of rowsOf(place, 'hosts')) hosts.set(Number(id), rec as HostRecord)
  const heard = new Map<number, number>()
  for (const { at, ids } of await readHeard(database, 0)) for (const id of decodeIds(ids)) heard.set(id, at)
  for await (const rows of readHosts(database, 0))
    for (const { hostId, status, reason, signs } of rows) {
      const { beat, link, load, greeting } = signs
      const host = hosts.get(hostId)
      const last = beat.at === null ? null : Math.max(beat.at, heard.get(hostId) ?? 0)
      if (host)
        yield {
          hostId,
          status,
          reason,
          lastHeartbeatAt: timeOf(last),
          agentStatus: beat.agentStatus,
          greeting,
          says: beat.says,
          linkLostAt: link === null || link.isUp ? null : timeOf(link.lostAt),
          warns: load.warns,
          revoked: host.agent?.tokenHash === null,
        }
    }
}

const timeOf = (at: number | null) => (at === null ? null : isoTime(at))

async function* samplesOf(place: Place): AsyncGenerator<Items['metrics']> {
  for await (const { id } of rowsOf(place, 'hosts')) {
    const days = new Map<string, string[]>()
    for await (const { at, metrics } of readSamples(place.database, Number(id), 0, Number.MAX_SAFE_INTEGER)) {
      const day = dayOf(at)
      const lines = days.get(day) ?? []
      days.set(day, lines)
      lines.push(encodeSample(at, metrics))
    }
    for (const [day, lines] of [...days].sort(([a], [b]) => (a < b ? -1 : 1)))
      yield { hostId: Number(id), day, lines: lines.sort() }
  }
}

/** Reads a store in PostgreSQL that no server uses. */
export function readPostgres(database: Database): Reader {
  const ask: Ask = (statement, values) => database.ask('api', statement, values)
  const place = { database, ask }
  return {
    identity: () => identityOf(place),
    records: () => recordsOf(place),
    executions: () => executionsOf(place),
    results: () => resultsOf(place),
    versions: () => versionsOf(place),
    output: () => outputOf(place),
    recordings: () => recordingsOf(place),
    files: () => readFiles(createFiles(database), fileRecordsOf(place)),
    audit: () => rawRows(database, () => headOf(ask), {}),
    heads: () => headsOf(place),
    presence: () => presenceOf(place),
    metrics: () => samplesOf(place),
  }
}
