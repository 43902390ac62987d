import { type FileHandle, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { faultPoint } from '#fault-point'
import { RsmError } from '../../../core/errors.ts'
import { syncDirectory } from '../../../disk/durable.ts'
import type {
  NewEntry,
  Progress,
  ReadBackQuery,
  ReadQuery,
  StoredEntry,
  StoredLine,
} from '../../seams/outputs.ts'
import {
  encodeRecord,
  firstAfter,
  type IndexRecord,
  matches,
  readRecords,
  recordBytes,
  startOf,
} from './index-file.ts'
import { entryJson, lineOf } from './line.ts'
import { logFiles, openBoth } from './log-files.ts'
import { cursorBeforeLast, recordsBefore } from './read-back.ts'
import { recoverLog } from './recovery.ts'
import { writeAll } from './write-all.ts'

/** A read stops at about so many bytes, so that no reader makes the server hold more. */
const readBudget = 256 * 1024

/** Readers of one log at once that are spared the search; others find their place by bisection. */
const keptPlaces = 256

interface Waiting {
  line: readonly Uint8Array[]
  length: number
  entry: NewEntry
  bytes: number
  resolve: () => void
  reject: (error: unknown) => void
}

export interface TaskLogEvents {
  /** New entries can be read. */
  written(): void
  /** Settles when this log may be synced; what it gives is called when that is done. */
  turn(): Promise<() => void>
  /** An fsync took so many seconds; so many bytes of output are durable by it. */
  synced(seconds: number, bytes: number): void
  /** A read found a piece of a host (0: of whichever) that is not what was written. */
  damaged(hostId: number, sentence: string): void
  /** The disk can't be trusted any more: the caller ends the process. */
  fatal(error: unknown): void
}

/**
 * The output of one task: an append-only log of JSON lines, and an index of fixed records beside it. An entry's id is
 * the offset at which it ends, so a cursor costs nothing to keep. The log is the truth; an index that disagrees with it
 * after a crash is made again.
 */
export class TaskLog {
  #log: FileHandle
  #index: FileHandle
  #size = 0
  #records = 0
  #waiting: Waiting[] = []
  /** Written, and not yet durable. */
  #written: Waiting[] = []
  #writing: Promise<void> | null = null
  #syncing: Promise<void> | null = null
  /** Why nothing is taken any more: an fsync has failed. */
  #broken: { error: unknown } | null = null
  /** The number of the record that follows a cursor, of the reads of late: who follows a log need not search it. */
  readonly #places = new Map<number, number>()
  readonly #events: TaskLogEvents
  readonly #path: string

  private constructor(path: string, log: FileHandle, index: FileHandle, events: TaskLogEvents) {
    this.#path = path
    this.#log = log
    this.#index = index
    this.#events = events
  }

  /** Null when there is no log and `create` is false. */
  static async open(directory: string, create: boolean, events: TaskLogEvents): Promise<TaskLog | null> {
    if (create) await mkdir(directory, { recursive: true, mode: 0o700 })
    let files: [FileHandle, FileHandle]
    try {
      files = await openBoth(directory, create)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT' && !create) return null
      throw error
    }
    const opened = new TaskLog(join(directory, logFiles[0]), ...files, events)
    const { size, records } = await recoverLog(...files)
    opened.#size = size
    opened.#records = records
    if (create) {
      await syncDirectory(directory)
      await syncDirectory(dirname(directory))
    }
    return opened
  }

  append(entry: NewEntry): Promise<void> {
    if (this.#broken) return Promise.reject(this.#broken.error)
    const line = lineOf(entry)
    const length = line.reduce((sum, piece) => sum + piece.length, 0)
    const bytes = Buffer.byteLength(entry.data)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ line, length, entry, bytes, resolve, reject })
      this.#writing ??= this.#writeAll()
    })
  }

  /** All that came while the last write ran goes out in one; an fsync under way holds up no write, and so no reader. */
  async #writeAll(): Promise<void> {
    // What a socket holds comes in one turn of the event loop, and makes one write.
    await new Promise(setImmediate)
    while (this.#waiting.length > 0) {
      const batch = this.#waiting
      this.#waiting = []
      try {
        await this.#write(batch)
        if (this.#broken) throw this.#broken.error
        this.#written.push(...batch)
        this.#syncing ??= this.#syncAll()
      } catch (error) {
        // What came after it would leave a gap behind: its senders send it again, with what went before.
        const later = this.#waiting
        this.#waiting = []
        for (const { reject } of [...batch, ...later]) reject(error)
      }
    }
    this.#writing = null
  }

  /** Group commit: all that was written while the last fsync ran becomes durable by the next. */
  async #syncAll(): Promise<void> {
    while (this.#written.length > 0) {
      const done = await this.#events.turn()
      const batch = this.#written
      this.#written = []
      try {
        await this.#sync(batch)
        for (const { resolve } of batch) resolve()
      } catch (error) {
        // No later one may succeed either: it would stand behind a gap.
        this.#broken = { error }
        const later = this.#written
        this.#written = []
        for (const { reject } of [...batch, ...later]) reject(error)
      } finally {
        done()
      }
    }
    this.#syncing = null
  }

  /** After a failed fsync the page cache lies: a second try would prove nothing (reliability, facts). */
  async #sync(batch: readonly Waiting[]): Promise<void> {
    const start = performance.now()
    try {
      await this.#log.datasync()
    } catch (error) {
      this.#events.fatal(error)
      throw error
    }
    const size = batch.reduce((sum, { bytes }) => sum + bytes, 0)
    this.#events.synced((performance.now() - start) / 1000, size)
  }

  async #write(batch: Waiting[]): Promise<void> {
    let end = this.#size
    const records = batch.map(({ length, entry, bytes }) => {
      end += length
      return encodeRecord({ ...entry, end, length, bytes })
    })
    try {
      await writeAll(
        this.#log,
        batch.flatMap(({ line }) => line),
        this.#size,
      )
      faultPoint('server.output.written')
      await writeAll(this.#index, records, this.#records * recordBytes)
    } catch (error) {
      // A full disk writes short before it fails: what is past the last good entry must not be taken for one.
      await this.#log.truncate(this.#size).catch(() => undefined)
      await this.#index.truncate(this.#records * recordBytes).catch(() => undefined)
      throw error
    }
    this.#size = end
    this.#records += records.length
    this.#events.written()
  }

  async read(query: ReadQuery): Promise<{ entries: StoredEntry[]; next: number }> {
    const { lines, next } = await this.readLines(query)
    const whole = lines.findIndex(({ damage }) => damage !== undefined)
    if (whole < 0) return { entries: lines.map(decoded), next }
    const before = lines.slice(0, whole).map(decoded)
    return { entries: before, next: before.at(-1)?.id ?? refuse(lines[whole]) }
  }

  async readBefore(
    query: ReadBackQuery,
  ): Promise<{ entries: StoredEntry[]; next: number; previous: number }> {
    const { wanted, ...cursors } = await recordsBefore(this.#index, this.#records, query, readBudget)
    const lines = await this.#load(wanted)
    const damaged = lines.find(({ damage }) => damage !== undefined)
    if (damaged) refuse(damaged)
    return { entries: lines.map(decoded), ...cursors }
  }

  async readLines(query: ReadQuery): Promise<{ lines: StoredLine[]; next: number }> {
    const lines: StoredLine[] = []
    let next = query.after
    if (next >= this.#size) return { lines, next }
    let budget = readBudget
    const all = this.#records
    let at = this.#places.get(query.after) ?? (await firstAfter(this.#index, all, query.after))
    while (at < all && budget > 0) {
      const records = await readRecords(this.#index, at, Math.min(all - at, 2048))
      if (records.length === 0) break
      const wanted: IndexRecord[] = []
      let seen = 0
      for (const record of records) {
        seen++
        next = record.end
        if (matches(record, query)) {
          wanted.push(record)
          budget -= record.length
        }
        if (budget <= 0 || lines.length + wanted.length >= query.limit) break
      }
      at += seen
      for (const line of await this.#load(wanted)) lines.push(line)
      if (lines.length >= query.limit) break
    }
    this.#keepPlace(query.after, next, at)
    return { lines, next }
  }

  cursorBeforeLast(tail: number, query: Pick<ReadQuery, 'hostId' | 'stream'>): Promise<number> {
    return cursorBeforeLast(this.#index, { count: this.#records, size: this.#size }, tail, query)
  }

  async progress(): Promise<Map<number, Progress>> {
    const found = new Map<number, Progress>()
    for (let at = 0; at < this.#records; ) {
      const records = await readRecords(this.#index, at)
      if (records.length === 0) break
      at += records.length
      for (const record of records) {
        if (record.hostId === 0) continue
        const progress = found.get(record.hostId) ?? {
          lastSequence: -1,
          stdoutBytes: 0,
          stderrBytes: 0,
          frames: 0,
        }
        progress.frames++
        progress.lastSequence = Math.max(progress.lastSequence, record.sequence)
        progress[record.stream === 'stdout' ? 'stdoutBytes' : 'stderrBytes'] += record.bytes
        found.set(record.hostId, progress)
      }
    }
    return found
  }

  async close(): Promise<void> {
    await this.#writing
    await this.#syncing
    await Promise.all([this.#log.close(), this.#index.close()])
  }

  #keepPlace(before: number, cursor: number, place: number): void {
    this.#places.delete(before)
    this.#places.set(cursor, place)
    const [oldest] = this.#places.keys()
    if (this.#places.size > keptPlaces && oldest !== undefined) this.#places.delete(oldest)
  }

  #damaged({ end: id, hostId, length, stream, sequence }: IndexRecord): StoredLine {
    const whose = hostId === 0 ? '' : ` of ${stream}`
    const damage = `the output is damaged: ${this.#path}, byte ${id - length}: a piece${whose} can not be shown`
    this.#events.damaged(hostId, damage)
    const entry = {
      hostId,
      stream: 'stderr',
      sequence,
      timestamp: new Date(0).toISOString(),
      data: `rsm: ${damage}\n`,
    }
    return { id, hostId, damage, json: Buffer.from(JSON.stringify(entry)) }
  }

  /** Entries that stand side by side come in one read. */
  async #load(records: IndexRecord[]): Promise<StoredLine[]> {
    const lines: StoredLine[] = []
    for (let first = 0; first < records.length; ) {
      let last = first
      while (last + 1 < records.length && startOf(records[last + 1]) === records[last]?.end) last++
      const start = startOf(records[first])
      const end = records[last]?.end ?? start
      const buffer = Buffer.allocUnsafe(end - start)
      await this.#log.read(buffer, 0, buffer.length, start)
      for (; first <= last; first++) {
        const record = records[first]
        if (!record) break
        const json = entryJson(buffer.subarray(startOf(record) - start, record.end - start - 1))
        const { end: id, hostId } = record
        lines.push(json ? { id, hostId, json } : this.#damaged(record))
      }
    }
    return lines
  }
}

/** Errors: `gone`, with where to go on. */
function refuse(line: StoredLine | undefined): never {
  throw new RsmError('gone', line?.damage ?? '', {
    hint: `what follows can be read: after=${line?.id}`,
  })
}

function decoded({ id, json }: StoredLine): StoredEntry {
  return { id, ...(JSON.parse(json.toString('utf8')) as NewEntry) }
}
