import { mkdir, open, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { showHead } from '../../../../core/audit.ts'
import { checkedJson } from '../../../../disk/checked-json.ts'
import { isoTime } from '../../../../disk/clock.ts'
import { createLog } from '../../../../disk/log.ts'
import { writeFiles } from '../../migrate/files.ts'
import type { OutputPiece, Writer } from '../../migrate/kinds.ts'
import { lineOfLength } from '../../output-line.ts'
import type { RecordingWriter } from '../../ports/recordings.ts'
import type { RunRecord } from '../../records/run.ts'
import { freeze, Tables } from '../../tables/tables.ts'
import { auditFileName } from '../audit/log-file.ts'
import { openDirectoryFiles } from '../directory-files.ts'
import { appendLines } from '../history/day-file.ts'
import { logFiles } from '../outputs/task-log.ts'
import { type KeptStatus, keepStatus } from '../presence/kept-status.ts'
import { openFileRecordings } from '../recordings/file-recordings.ts'
import { createScriptVersions } from '../script-versions.ts'
import { makeStore } from '../store/recovery.ts'
import { markName } from '../used.ts'

/** Bytes of a log that are written at once. */
const blockBytes = 1024 * 1024
const mode = 0o600

function rethrow(error: unknown): never {
  throw error
}

class LogWriter {
  readonly #directory: string
  #taskId = ''
  #start = 0
  #end = 0
  #lines: Buffer[] = []

  constructor(directory: string) {
    this.#directory = directory
  }

  async add(piece: OutputPiece): Promise<void> {
    if (piece.taskId !== this.#taskId) {
      await this.flush()
      this.#taskId = piece.taskId
      this.#start = 0
      this.#end = 0
    }
    this.#lines.push(lineOfLength({ ...piece, timestamp: isoTime(piece.at) }, piece.id - this.#end))
    this.#end = piece.id
    if (this.#end - this.#start >= blockBytes) await this.flush()
  }

  async flush(): Promise<void> {
    if (this.#lines.length === 0) return
    const directory = join(this.#directory, this.#taskId)
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await writeFile(join(directory, logFiles[0]), Buffer.concat(this.#lines), { flag: 'a', mode })
    this.#lines = []
    this.#start = this.#end
  }
}

/** Fills an empty data directory; the caller sees to it that all of it is on disk at the end. */
export function createDirectoryWriter(path: string): Writer {
  const tables = new Tables()
  let storeId = ''
  return {
    async identity(items) {
      for await (const item of items) {
        storeId = item.storeId
        Object.assign(tables.lastIds, item.lastIds)
      }
    },
    async records(items) {
      for await (const { noun, record } of items) {
        tables.apply({ noun, id: record.id, record: freeze(record) })
        // Its next start follows on all that agents may know of.
        if (noun === 'runs') tables.sequence = Math.max(tables.sequence, (record as RunRecord).last ?? 0)
      }
    },
    async executions(items) {
      for await (const { execution } of items)
        tables.apply({ noun: 'executions', id: execution.id, record: freeze(execution) })
      const directory = join(path, 'store')
      await mkdir(directory, { mode: 0o700 })
      await makeStore(directory, storeId, tables, new AbortController().signal)
      await writeFile(join(path, markName), `${storeId}\n`, { mode })
    },
    async results(items) {
      for await (const { taskId, ...remains } of items) {
        const directory = join(path, 'tasks', taskId)
        await mkdir(directory, { recursive: true, mode: 0o700 })
        const json = JSON.stringify(remains)
        await writeFile(join(directory, 'task.json'), checkedJson(json), { mode })
      }
    },
    async versions(items) {
      const versions = createScriptVersions(join(path, 'scripts'))
      for await (const script of items) await versions.keep(script)
    },
    async output(items) {
      const log = new LogWriter(join(path, 'tasks'))
      for await (const piece of items) await log.add(piece)
      await log.flush()
    },
    async recordings(items) {
      const recordings = await openFileRecordings(join(path, 'terminals'))
      let writer: RecordingWriter | null = null
      for await (const item of items)
        if (item instanceof Uint8Array) await writer?.append([item])
        else {
          await writer?.end()
          writer = await recordings.create(item.id, new Uint8Array(), rethrow)
        }
      await writer?.end()
    },
    async files(items) {
      await writeFiles(await openDirectoryFiles(join(path, 'files')), items)
    },
    async audit(items) {
      const directory = join(path, 'audit')
      await mkdir(directory, { mode: 0o700 })
      const file = await open(join(directory, auditFileName), 'wx', mode)
      try {
        for await (const bytes of items) await file.writeFile(bytes)
      } finally {
        await file.close()
      }
    },
    async heads(items) {
      for await (const { noted } of items)
        if (noted) await writeFile(join(path, 'audit.head'), `${showHead(noted)}\n`, { mode })
    },
    async presence(items) {
      const kept: KeptStatus[] = []
      for await (const { greeting, revoked: _, ...rest } of items) kept.push({ ...rest, running: greeting })
      await keepStatus(join(path, 'presence.json'), kept, createLog('WARN'))
    },
    async metrics(items) {
      for await (const { hostId, day, lines } of items)
        await appendLines(join(path, 'metrics', String(hostId), `${day}.jsonl`), lines)
    },
  }
}
