import { createReadStream } from 'node:fs'
import { open, readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type AuditHead, beforeFirst, parseHead } from '../../../../core/audit.ts'
import { RsmError } from '../../../../core/errors.ts'
import { createLog } from '../../../../disk/log.ts'
import { resultOf } from '../../executions/shown.ts'
import { readFiles } from '../../migrate/files.ts'
import type { Items, OutputPiece, Reader } from '../../migrate/kinds.ts'
import { splitLine } from '../../output-line.ts'
import type { Progress, Results } from '../../ports/outputs.ts'
import type { FileRecord } from '../../records/file.ts'
import type { HostRecord } from '../../records/host.ts'
import { nouns } from '../../records/records.ts'
import type { RunRecord } from '../../records/run.ts'
import type { ExecutionRecord, TaskRecord } from '../../records/task.ts'
import { decodeSample, encodeSample } from '../../samples/sample-line.ts'
import type { Tables } from '../../tables/tables.ts'
import { auditFileName, lastEntry } from '../audit/log-file.ts'
import { readAlone } from '../backup/alone.ts'
import { openDirectoryFiles } from '../directory-files.ts'
import { dayFileOf, endOfDay, isMissing, linesOf } from '../history/day-file.ts'
import { TaskLog } from '../outputs/task-log.ts'
import { lastKnownOf, readKeptStatus } from '../presence/kept-status.ts'
import { recordingSuffix } from '../recordings/file-recordings.ts'
import { verifyRecording } from '../recordings/sums.ts'
import { createFileResults } from '../results.ts'
import { createScriptVersions } from '../script-versions.ts'

/** Lines of output of one read. */
const linesAtOnce = 2000

/** What is read of a data directory, whose lock the caller holds. */
interface Place {
  readonly path: string
  readonly tables: Tables
  readonly storeId: string
}

const unsound = (path: string, message: string, cause?: unknown) =>
  new RsmError('unavailable', `${path} is damaged: ${message}`, {
    hint: `look closer with \`rsm server doctor --data-dir ${path}\`, and put back from a backup what it names`,
    cause,
  })

/** The items; what is not as it was written is damage of the data directory. */
async function* sound<T>(path: string, items: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* items
  } catch (error) {
    const isDamage = error instanceof SyntaxError || (error instanceof RsmError && error.code === 'gone')
    throw isDamage ? unsound(path, error.message, error) : error
  }
}

async function* identityOf({ storeId, tables }: Place): AsyncGenerator<Items['identity']> {
  const given = Object.entries(tables.lastIds).filter(([, id]) => id > 0)
  yield { storeId, lastIds: Object.fromEntries(given) }
}

/** A start that no other followed ended where the store does: agents may know of all of it. */
const ended = (run: RunRecord, sequence: number): RunRecord => ({ ...run, last: run.last ?? sequence })

async function* recordsOf({ path, tables }: Place): AsyncGenerator<Items['records']> {
  const results = createFileResults(join(path, 'tasks'))
  for (const noun of nouns) {
    if (noun === 'executions') continue
    for (const record of tables.slice(noun))
      if (noun === 'runs') yield { noun, record: ended(record as RunRecord, tables.sequence) }
      else if (noun === 'tasks') yield { noun, record: await withParams(record as TaskRecord, results) }
      else yield { noun, record }
  }
}

/** Params of an ended task stand beside its results, and in PostgreSQL in its record. */
async function withParams(task: TaskRecord, results: Results): Promise<TaskRecord> {
  const { paramsInResults, ...record } = task
  return paramsInResults ? { ...record, params: (await results.read(task.id))?.params ?? {} } : task
}

const none = { lastSequence: -1, stdoutBytes: 0, stderrBytes: 0, frames: 0 }

async function* executionsOf({ path, tables }: Place): AsyncGenerator<Items['executions']> {
  const byTask = new Map<string, ExecutionRecord[]>()
  for (const execution of tables.slice('executions') as ExecutionRecord[]) {
    const others = byTask.get(execution.taskId)
    if (others) others.push(execution)
    else byTask.set(execution.taskId, [execution])
  }
  for (const [taskId, executions] of [...byTask].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const log = await openLog(path, taskId)
    const stored = (await log?.progress()) ?? new Map<number, Progress>()
    await log?.close()
    for (const execution of executions.sort((a, b) => a.hostId - b.hostId)) {
      const progress = stored.get(execution.hostId) ?? none
      yield { execution, progress: execution.overSsh ? null : progress }
    }
  }
}

const taskIdsOf = (tables: Tables) => tables.slice('tasks').map(({ id }) => String(id))

async function* resultsOf({ path, tables }: Place): AsyncGenerator<Items['results']> {
  const results = createFileResults(join(path, 'tasks'))
  for (const taskId of taskIdsOf(tables)) {
    const found = await results.read(taskId)
    if (!found) continue
    const { params: _, ...remains } = found
    yield { taskId, ...remains, results: remains.results.map(resultOf) }
  }
}

async function* versionsOf({ path, tables }: Place): AsyncGenerator<Items['versions']> {
  const versions = createScriptVersions(join(path, 'scripts'))
  for (const { id } of tables.slice('scripts'))
    for (const version of await versions.list(Number(id))) {
      const script = await versions.read(Number(id), version)
      if (script) yield script
    }
}

const openLog = (path: string, taskId: string) =>
  TaskLog.open(join(path, 'tasks', taskId), false, {
    written: () => undefined,
    turn: async () => () => undefined,
    synced: () => undefined,
    damaged: () => undefined,
    fatal(error) {
      throw error
    },
  })

async function* piecesOf(path: string, taskId: string): AsyncGenerator<OutputPiece> {
  const log = await openLog(path, taskId)
  if (log === null) return
  try {
    for (let after = 0; ; ) {
      const { lines, next } = await log.readLines({ after, limit: linesAtOnce })
      if (next === after) return
      for (const { id, json, damage } of lines) {
        if (damage !== undefined) throw new RsmError('gone', damage)
        const { timestamp, ...piece } = splitLine(json)
        yield { ...piece, taskId, id, at: Date.parse(timestamp) }
      }
      after = next
    }
  } finally {
    await log.close()
  }
}

async function* outputOf({ path, tables }: Place): AsyncGenerator<OutputPiece> {
  for (const taskId of taskIdsOf(tables)) yield* piecesOf(path, taskId)
}

const nullWhereMissing = (error: unknown): null => {
  if (isMissing(error)) return null
  throw error
}

async function* recordingsOf({ path, tables }: Place): AsyncGenerator<Items['recordings']> {
  for (const { id } of tables.slice('terminals')) {
    const file = join(path, 'terminals', `${id}${recordingSuffix}`)
    const found = await stat(file).catch(nullWhereMissing)
    if (found === null) continue
    await verifyRecording(file, found.size, found.size)
    yield { id: String(id), bytes: found.size }
    yield* createReadStream(file)
  }
}

async function* filesOf({ path, tables }: Place): AsyncGenerator<Items['files']> {
  const records = tables.slice('files') as FileRecord[]
  if (records.length > 0) yield* readFiles(await openDirectoryFiles(join(path, 'files')), records)
}

/** The log as a start would find it. */
async function auditOf(path: string): Promise<{ file: string; size: number; head: AuditHead }> {
  const file = join(path, 'audit', auditFileName)
  const handle = await open(file, 'r').catch(nullWhereMissing)
  if (handle === null) return { file, size: 0, head: beforeFirst }
  try {
    const { size } = await handle.stat()
    const last = await lastEntry(handle, size)
    if (last.size < size)
      throw new RsmError('conflict', `the last line of ${file} is cut off or no entry`, {
        hint: 'start the server once, which keeps it aside and notes that, and stop it; then migrate',
      })
    return { file, ...last }
  } finally {
    await handle.close()
  }
}

async function* auditLinesOf(path: string): AsyncGenerator<Items['audit']> {
  const { file, size } = await auditOf(path)
  if (size > 0) yield* createReadStream(file, { end: size - 1 })
}

async function* headsOf(path: string): AsyncGenerator<Items['heads']> {
  const { head } = await auditOf(path)
  const file = join(path, 'audit.head')
  const text = await readFile(file, 'utf8').catch(nullWhereMissing)
  const noted = text === null ? null : parseHead(text)
  if (noted === undefined) throw unsound(path, `${file} does not hold a head`)
  yield { head, noted }
}

async function* presenceOf({ path, tables }: Place): AsyncGenerator<Items['presence']> {
  const kept = await readKeptStatus(join(path, 'presence.json'), createLog('WARN'))
  for (const row of kept.toSorted((a, b) => a.hostId - b.hostId)) {
    const host = tables.get('hosts', row.hostId) as HostRecord | undefined
    if (host) yield { ...lastKnownOf(row), revoked: host.agent?.tokenHash === null }
  }
}

async function* samplesOf({ path, tables }: Place): AsyncGenerator<Items['metrics']> {
  for (const { id } of tables.slice('hosts')) {
    const directory = join(path, 'metrics', String(id))
    const files = (await readdir(directory).catch(nullWhereMissing)) ?? []
    for (const file of files.filter((name) => endOfDay(name) !== null).sort()) {
      const lines: string[] = []
      for await (const line of linesOf(join(directory, file))) {
        const sample = decodeSample(line)
        if (sample && dayFileOf(sample.at) === file) lines.push(encodeSample(sample.at, sample.metrics))
      }
      const day = file.slice(0, 10)
      if (lines.length > 0) yield { hostId: Number(id), day, lines: lines.sort() }
    }
  }
}

/** Reads a data directory, whose lock the caller holds; `tables`: all its records. Errors: `unavailable` where something is damaged. */
export async function readDirectory(
  path: string,
): Promise<{ reader: Reader; storeId: string; tables: Tables }> {
  const { manifest, tables } = await readAlone(path)
  const { storeId } = manifest
  const place = { path, tables, storeId }
  const reader: Reader = {
    identity: () => identityOf(place),
    records: () => sound(path, recordsOf(place)),
    executions: () => executionsOf(place),
    results: () => sound(path, resultsOf(place)),
    versions: () => sound(path, versionsOf(place)),
    output: () => sound(path, outputOf(place)),
    recordings: () => sound(path, recordingsOf(place)),
    files: () => sound(path, filesOf(place)),
    audit: () => auditLinesOf(path),
    heads: () => headsOf(path),
    presence: () => presenceOf(place),
    metrics: () => samplesOf(place),
  }
  return { reader, storeId, tables }
}
