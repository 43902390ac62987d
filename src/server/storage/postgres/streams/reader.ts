import type { AuditHead } from '../../../../core/audit.ts'
import { RsmError } from '../../../../core/errors.ts'
import type { TaskResult } from '../../../../core/tasks/task.ts'
import { isoTime } from '../../../../disk/clock.ts'
import { resultOf } from '../../executions/summary.ts'
import { lineOfLength } from '../../output-line.ts'
import type { FileRecord } from '../../records/file.ts'
import type { HostRecord } from '../../records/host.ts'
import { type AnyRecord, type Id, type Noun, nouns } from '../../records/records.ts'
import type { RunRecord } from '../../records/run.ts'
import type { ScriptRecord } from '../../records/script.ts'
import type { TaskRecord } from '../../records/task.ts'
import { encodeSample } from '../../samples.ts'
import { type Items, type OnDamage, type Reader, readFiles } from '../../streams.ts'
import { rawRows } from '../audit-log.ts'
import type { Ask, Database } from '../connection/database.ts'
import { columns, type Row, storedOf } from '../executions/rows.ts'
import { createFiles } from '../files.ts'
import { decodeIds } from '../hints/lines.ts'
import { phaseAt } from '../outputs/read.ts'
import { type HostRow, readHeard, readRows } from '../presence/patches.ts'
import { readChunks, verifyChunks } from '../recordings.ts'
import { type Texts, textsIn } from '../results.ts'
import { createIds } from '../store/changes.ts'
import { numbered, tableOf } from '../store/tables.ts'
import { dayOf, readSamples } from '../stored-samples.ts'

/** Rows per page of records, and of pieces of output, which may be large. */
const rowsAtOnce = 1000
const piecesAtOnce = 250
/** Approximate results per page. */
const resultsAtOnce = 5000

interface Place {
  readonly database: Database
  readonly ask: Ask
  readonly damaged: OnDamage
}

/** Reads pages until one is empty; `last` is the last row of the previous page. */
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

/** Adds the marks of a start, which are counted outside its record. */
function runOf(run: RunRecord, progress: number): Pick<Items['records'], 'record' | 'isOpen'> {
  const record = { ...run, last: Math.max(run.last ?? 0, progress) }
  return run.last === null ? { record, isOpen: true } : { record }
}

async function* recordsOf(place: Place): AsyncGenerator<Items['records']> {
  for (const noun of nouns) {
    if (noun === 'executions') continue
    for await (const { rec, progress } of rowsOf(place, noun))
      if (noun === 'runs') yield { noun, ...runOf(rec as RunRecord, progress) }
      else yield { noun, record: rec }
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

/** Groups task ids so that their hosts add up to about `resultsAtOnce`. */
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

/** Yields each piece as a line of a log, padded to the length that its id implies. */
async function* outputOf(place: Place): AsyncGenerator<Items['output']> {
  const known = await idsOf(place, 'tasks')
  const heads = await place.ask<{ task_id: string; last: number }>(
    'select task_id, last from rsm.output_heads',
  )
  const ends = new Map(heads.map(({ task_id, last }) => [task_id, last]))
  const rows = paged<Piece>((last) =>
    place.ask<Piece>(
      `select task_id, id, host_id, is_stderr, sequence, at, phase, data from rsm.outputs
      where task_id >= $1 and (task_id, id) > ($1, $2::bigint) order by task_id, id limit ${piecesAtOnce}`,
      [last?.task_id ?? '', last?.id ?? 0],
    ),
  )
  let before = { taskId: '', end: 0 }
  for await (const { task_id: taskId, id, host_id: hostId, is_stderr, sequence, at, phase, data } of rows) {
    // Output of removed tasks stays until its table is dropped.
    if (!known.has(taskId)) continue
    if (taskId !== before.taskId) {
      yield { id: taskId, bytes: ends.get(taskId) ?? 0 }
      before = { taskId, end: 0 }
    }
    const stream = is_stderr ? 'stderr' : 'stdout'
    const head = { hostId, stream, sequence, timestamp: isoTime(at), ...phaseAt(phase) } as const
    yield lineOfLength({ ...head, json: data }, id - before.end)
    before.end = id
  }
}

async function* recordingsOf(place: Place): AsyncGenerator<Items['recordings']> {
  const known = await idsOf(place, 'terminals')
  const rows = await place.ask<{ key: number; id: string; bytes: number }>(
    'select key, id, bytes from rsm.recordings where aside is null order by id collate "C"',
  )
  for (const { key, id, bytes } of rows) {
    if (!known.has(id)) continue
    await verifyChunks(place.database, { key, session: id }, bytes).catch((error: unknown) => {
      if (!(error instanceof RsmError && error.code === 'gone')) throw error
      place.damaged({ code: 'recording', of: `terminal session ${id}`, fault: error.message, path: id })
    })
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
  const heard = new Map<number, number>()
  for (const { at, ids } of await readHeard(database, 0, -1))
    for (const id of decodeIds(ids)) heard.set(id, at)
  const patches = new Map<number, HostRow['patch']>()
  for await (const { hostId, patch } of readRows(database, 0)) patches.set(hostId, patch)
  for await (const { id, rec } of rowsOf(place, 'hosts')) {
    const hostId = Number(id)
    const { beat, link, load, greeting, standing } = patches.get(hostId) ?? {}
    if (!beat || !standing) continue
    yield {
      hostId,
      status: standing.status,
      reason: standing.reason,
      lastHeartbeatAt: timeOf(beat.at === null ? null : Math.max(beat.at, heard.get(hostId) ?? 0)),
      agentStatus: beat.agentStatus,
      greeting: greeting ?? null,
      says: beat.says,
      linkLostAt: link === undefined || link.isUp ? null : timeOf(link.lostAt),
      warns: load?.warns ?? [],
      revoked: (rec as HostRecord).agent?.tokenHash === null,
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

const refuse: OnDamage = ({ of, fault }) => {
  throw new RsmError('gone', `${of} is damaged: ${fault}`)
}

/** Reads a store that no server changes meanwhile. Errors: `gone` for damaged data, unless `damaged` accepts it. */
export function readPostgres(database: Database, damaged: OnDamage = refuse): Reader {
  const ask: Ask = (statement, values) => database.ask('api', statement, values)
  const place = { database, ask, damaged }
  return {
    identity: () => identityOf(place),
    records: () => recordsOf(place),
    executions: () => executionsOf(place),
    results: () => resultsOf(place),
    versions: () => versionsOf(place),
    output: () => outputOf(place),
    recordings: () => recordingsOf(place),
    files: () => readFiles(createFiles(database), fileRecordsOf(place), damaged),
    audit: () => rawRows(database, () => headOf(ask), {}),
    heads: () => headsOf(place),
    presence: () => presenceOf(place),
    metrics: () => samplesOf(place),
  }
}
