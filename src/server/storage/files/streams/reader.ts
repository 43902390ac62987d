import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseHead } from '../../../../core/audit.ts'
import { RsmError } from '../../../../core/errors.ts'
import { fitsCheck, hasCheck } from '../../../../disk/digest.ts'
import { nullWhereMissing } from '../../../../disk/durable.ts'
import { createLog } from '../../../../disk/log.ts'
import { resultOf } from '../../executions/summary.ts'
import { parseEntry } from '../../output-line.ts'
import type { Progress, TaskRemains } from '../../ports/outputs.ts'
import type { FileRecord } from '../../records/file.ts'
import type { HostRecord } from '../../records/host.ts'
import { nouns } from '../../records/records.ts'
import type { RunRecord } from '../../records/run.ts'
import type { ExecutionRecord, TaskRecord } from '../../records/task.ts'
import { decodeSample, encodeSample } from '../../samples.ts'
import { type Damage, type Items, linesOf, type OnDamage, type Reader } from '../../streams.ts'
import type { Tables, TablesView } from '../../tables.ts'
import { auditEnd } from '../audit-file.ts'
import { readOffline } from '../backup/offline.ts'
import { dayFileOf, endOfDay, linesOf as linesOfFile } from '../history.ts'
import { lastKnownOf, readKeptStatus } from '../presence.ts'
import { opened, readFirst, watchLines, wholeLines } from '../read-file.ts'
import { recordingSuffix, sumsSuffix, verifyRecording } from '../recordings.ts'
import { createFileResults } from '../results.ts'
import { createScriptVersions } from '../script-versions.ts'

interface Source {
  readonly path: string
  readonly tables: TablesView
  readonly storeId: string
  readonly damaged: OnDamage
  /**
   * Only for a caller that checks files and drops the items. Called for unreadable output, results,
   * recordings, script versions and files; reading continues with the next one. Without it, such an error ends
   * the reading.
   */
  readonly unreadable?: OnDamage
}

interface Place extends Source {
  /** Bytes of whole lines in a task's log at the first read, because a running server appends to it. */
  readonly logBytes: Map<string, number>
}

const unsound = (path: string, message: string, cause?: unknown) =>
  new RsmError('unavailable', `${path} is damaged: ${message}`, {
    hint: `run \`rsm server doctor --data-dir ${path}\`, and restore from a backup what it names`,
    cause,
  })

/** Items of one file; passes its errors to `unreadable`. */
async function* reported<T>(
  { unreadable }: Source,
  file: Omit<Damage, 'fault'>,
  read: () => AsyncGenerator<T>,
): AsyncGenerator<T> {
  try {
    yield* read()
  } catch (error) {
    if (!unreadable) throw error
    const reason = error instanceof Error ? error.message : String(error)
    unreadable({ ...file, fault: `${file.path} cannot be read: ${reason}` })
  }
}

async function* identityOf({ storeId, tables }: Place): AsyncGenerator<Items['identity']> {
  const given = Object.entries(tables.lastIds).filter(([, id]) => id > 0)
  yield { storeId, lastIds: Object.fromEntries(given) }
}

async function* recordsOf(place: Place): AsyncGenerator<Items['records']> {
  const { tables } = place
  for (const noun of nouns) {
    if (noun === 'executions') continue
    for (const record of tables.slice(noun))
      if (noun === 'tasks') yield { noun, record: await withParams(place, record as TaskRecord) }
      // The last run ends where the store does, because agents may know about all of it.
      else if (noun === 'runs' && (record as RunRecord).last === null)
        yield { noun, record: { ...(record as RunRecord), last: tables.sequence }, isOpen: true }
      else yield { noun, record }
  }
}

/** Moves the params of an ended task from its results file back to its record, where PostgreSQL has them. */
async function withParams({ path }: Place, task: TaskRecord): Promise<TaskRecord> {
  const { paramsInResults, ...record } = task
  if (!paramsInResults) return task
  const remains = await readRemains(path, task.id)
  return remains === 'damaged' ? task : { ...record, params: remains?.params ?? {} }
}

async function readRemains(path: string, taskId: string): Promise<TaskRemains | 'damaged' | null> {
  try {
    return await createFileResults(join(path, 'tasks')).read(taskId)
  } catch (error) {
    if (error instanceof RsmError && error.code === 'gone') return 'damaged'
    throw error
  }
}

const none = { lastSequence: -1, stdoutBytes: 0, stderrBytes: 0, frames: 0 }

async function* executionsOf(place: Place): AsyncGenerator<Items['executions']> {
  const byTask = new Map<string, ExecutionRecord[]>()
  for (const execution of place.tables.slice('executions') as ExecutionRecord[]) {
    const others = byTask.get(execution.taskId)
    if (others) others.push(execution)
    else byTask.set(execution.taskId, [execution])
  }
  for (const [taskId, executions] of [...byTask].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const stored = await progressOf(place, taskId)
    for (const execution of executions.sort((a, b) => a.hostId - b.hostId)) {
      const progress = stored.get(execution.hostId) ?? none
      yield { execution, progress: execution.overSsh ? null : progress }
    }
  }
}

const taskIdsOf = (tables: TablesView) => tables.slice('tasks').map(({ id }) => String(id))

async function* resultsOf(place: Place): AsyncGenerator<Items['results']> {
  const { path, tables, damaged } = place
  for (const taskId of taskIdsOf(tables)) {
    const file = {
      code: 'results',
      of: `task ${taskId}`,
      path: join(path, 'tasks', taskId, 'task.json'),
    } as const
    yield* reported(place, file, async function* () {
      const found = await readRemains(path, taskId)
      if (found === null) return
      if (found === 'damaged') {
        damaged({ ...file, fault: `the results of the task are damaged: ${file.path}` })
        yield { taskId, damaged: await readFile(file.path, 'latin1') }
        return
      }
      const { params: _, ...remains } = found
      yield { taskId, ...remains, results: remains.results.map(resultOf) }
    })
  }
}

async function* versionsOf(place: Place): AsyncGenerator<Items['versions']> {
  const { path, tables, damaged } = place
  const directory = join(path, 'scripts')
  const versions = createScriptVersions(directory)
  for (const { id } of tables.slice('scripts')) {
    const folder = { code: 'script-version', of: `script ${id}`, path: join(directory, String(id)) } as const
    yield* reported(place, folder, async function* () {
      for (const version of await versions.list(Number(id))) {
        const file = { ...folder, path: join(folder.path, `${version}.json`) }
        yield* reported(place, file, async function* () {
          try {
            const script = await versions.read(Number(id), version)
            if (script) yield script
          } catch (error) {
            if (!(error instanceof SyntaxError)) throw error
            damaged({ ...file, fault: `${file.path} is not JSON`, isLeftOut: true })
          }
        })
      }
    })
  }
}

const logOf = (path: string, taskId: string) => join(path, 'tasks', taskId, 'output.log')

/** Bytes of a task's log that were whole lines at the first read. */
async function bytesOfLog({ logBytes }: Place, taskId: string, file: FileHandle): Promise<number> {
  const bytes = logBytes.get(taskId) ?? (await wholeLines(file))
  logBytes.set(taskId, bytes)
  return bytes
}

async function progressOf(place: Place, taskId: string): Promise<Map<number, Progress>> {
  const found = new Map<number, Progress>()
  const path = logOf(place.path, taskId)
  const lines = opened(path, async function* (file) {
    yield* linesOf(readFirst(file, await bytesOfLog(place, taskId, file), path))
  })
  for await (const line of lines) {
    const entry = parseEntry(line)
    if (entry === null) continue
    const { hostId, sequence, stream, data } = entry
    const { lastSequence, frames, ...sums } = found.get(hostId) ?? none
    const name = stream === 'stdout' ? 'stdoutBytes' : 'stderrBytes'
    found.set(hostId, {
      ...sums,
      lastSequence: Math.max(lastSequence, sequence),
      frames: frames + 1,
      [name]: sums[name] + Buffer.byteLength(data),
    })
  }
  return found
}

/** Whether a line of output matches its checksum; a line of 0.1.0 has none. */
const isOutput = (line: Buffer) => (hasCheck(line) ? fitsCheck(line) : parseEntry(line) !== null)

async function* outputOf(place: Place): AsyncGenerator<Items['output']> {
  const { damaged } = place
  for (const id of taskIdsOf(place.tables)) {
    const path = logOf(place.path, id)
    const log = { code: 'output', of: `task ${id}`, path } as const
    const fault = (offset: number) => `the output is damaged: ${path}, byte ${offset}`
    const read = async function* (file: FileHandle) {
      const bytes = await bytesOfLog(place, id, file)
      if (bytes === 0) return
      yield { id, bytes }
      yield* watchLines(readFirst(file, bytes, path), isOutput, (offset) =>
        damaged({ ...log, fault: fault(offset) }),
      )
    }
    yield* reported(place, log, () => opened(path, read))
  }
}

async function* recordingsOf(place: Place): AsyncGenerator<Items['recordings']> {
  const { path, tables, damaged } = place
  for (const terminal of tables.slice('terminals')) {
    const id = String(terminal.id)
    const cast = join(path, 'terminals', `${id}${recordingSuffix}`)
    const recording = { code: 'recording', of: `terminal session ${id}`, path: cast } as const
    const read = async function* (file: FileHandle) {
      const { size: bytes } = await file.stat()
      const fault = await verifyRecording(cast, bytes, bytes).then(
        () => null,
        (error: unknown) => {
          if (error instanceof RsmError && error.code === 'gone') return error.message
          throw error
        },
      )
      if (fault === null) yield { id, bytes }
      else {
        damaged({ ...recording, fault })
        yield { id, bytes, sums: await readFile(cast + sumsSuffix, 'latin1') }
      }
      yield* readFirst(file, bytes, cast)
    }
    yield* reported(place, recording, () => opened(cast, read))
  }
}

/** Sealed bytes have no digest that can be checked without the keys. */
async function* filesOf(place: Place): AsyncGenerator<Items['files']> {
  const { path, tables, damaged } = place
  for (const record of tables.slice('files')) {
    const { id, sha256, isComplete, sealedKey } = record as FileRecord
    const name = join(path, 'files', id)
    const upload = { code: 'file', of: `file ${id}`, path: name } as const
    const content = isComplete && sealedKey === null ? sha256 : null
    const read = async function* (file: FileHandle) {
      const { size: bytes } = await file.stat()
      yield { id, bytes, isComplete, content }
      const hash = createHash('sha256')
      for await (const piece of readFirst(file, bytes, name)) {
        hash.update(piece)
        yield piece
      }
      if (content !== null && hash.digest('hex') !== content)
        damaged({ ...upload, fault: `the file is damaged: ${name}` })
    }
    yield* reported(place, upload, () => opened(name, read))
  }
}

async function* auditLinesOf(path: string): AsyncGenerator<Items['audit']> {
  const { file, size } = await auditEnd(path)
  if (size > 0) yield* createReadStream(file, { end: size - 1 })
}

async function* headsOf(path: string): AsyncGenerator<Items['heads']> {
  const { head } = await auditEnd(path)
  const file = join(path, 'audit.head')
  const text = await readFile(file, 'utf8').catch(nullWhereMissing)
  const noted = text === null ? null : parseHead(text)
  if (noted === undefined) throw unsound(path, `${file} does not hold a head`)
  yield { head, noted }
}

async function* presenceOf({ path, tables }: Place): AsyncGenerator<Items['presence']> {
  const kept = await readKeptStatus(join(path, 'presence.json'), createLog('WARN'))
  const hosts = new Map((tables.slice('hosts') as HostRecord[]).map((host) => [host.id, host]))
  for (const row of kept.toSorted((a, b) => a.hostId - b.hostId)) {
    const host = hosts.get(row.hostId)
    if (host) yield { ...lastKnownOf(row), revoked: host.agent?.tokenHash === null }
  }
}

async function* samplesOf({ path, tables }: Place): AsyncGenerator<Items['metrics']> {
  for (const { id } of tables.slice('hosts')) {
    const directory = join(path, 'metrics', String(id))
    const files = (await readdir(directory).catch(nullWhereMissing)) ?? []
    for (const file of files.filter((name) => endOfDay(name) !== null).sort()) {
      const lines: string[] = []
      for await (const line of linesOfFile(join(directory, file))) {
        const sample = decodeSample(line)
        if (sample && dayFileOf(sample.at) === file) lines.push(encodeSample(sample.at, sample.metrics))
      }
      const day = file.slice(0, 10)
      if (lines.length > 0) yield { hostId: Number(id), day, lines: lines.sort() }
    }
  }
}

/** Reads the data directory of a server, even while it runs. Changes nothing. */
export function createDirectoryReader(source: Source): Reader {
  const { path } = source
  const place = { ...source, logBytes: new Map() }
  return {
    identity: () => identityOf(place),
    records: () => recordsOf(place),
    executions: () => executionsOf(place),
    results: () => resultsOf(place),
    versions: () => versionsOf(place),
    output: () => outputOf(place),
    recordings: () => recordingsOf(place),
    files: () => filesOf(place),
    audit: () => auditLinesOf(path),
    heads: () => headsOf(path),
    presence: () => presenceOf(place),
    metrics: () => samplesOf(place),
  }
}

/**
 * Reads a data directory, whose lock the caller holds; `tables` has all its records. Errors: `unavailable` at
 * the first damage, `conflict` if the audit log ends in the middle of an entry.
 */
export async function readDirectory(
  path: string,
): Promise<{ reader: Reader; storeId: string; tables: Tables }> {
  const { manifest, tables } = await readOffline(path)
  const { file, size, found } = await auditEnd(path)
  if (size < found)
    throw new RsmError('conflict', `the last line of ${file} is cut off or not an entry`, {
      hint: 'start the server once, which moves the line aside, and stop it; then migrate',
    })
  const { storeId } = manifest
  const damaged = ({ fault }: Damage) => {
    throw unsound(path, fault)
  }
  return { reader: createDirectoryReader({ path, tables, storeId, damaged }), storeId, tables }
}
