import { constants } from 'node:fs'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { faultPoint } from '#fault-point'
import { BoundedMap } from '../../../../core/bounded-map.ts'
import { RsmError } from '../../../../core/errors.ts'
import { type Appended, AppendLog } from '../../../../disk/append-log.ts'
import { type Disk, isMissing, syncDirectory, writeWhole } from '../../../../disk/durable.ts'
import { entryJson, lineOf } from '../../output-line.ts'
import type {
  NewEntry,
  Progress,
  ReadBackQuery,
  ReadQuery,
  StoredEntry,
  StoredLine,
} from '../../ports/outputs.ts'
import {
  cursorBeforeLast,
  encodeRecord,
  firstAfter,
  type IndexRecord,
  matches,
  readRecords,
  recordBytes,
  recordsBefore,
  startOf,
} from './index-file.ts'
import { recoverLog } from './recovery.ts'

export const logFiles = ['output.log', 'output.idx'] as const

/** Approximate bytes at which a read stops, to bound the server's memory for each reader. */
const readBudget = 256 * 1024

/** Readers of one log whose position is cached; others find theirs by bisection. */
const keptPlaces = 256

interface Piece {
  readonly entry: NewEntry
  readonly bytes: number
}

export interface TaskLogEvents {
  written(): void
  /** Resolves when this log may be synced; call the result when done. */
  acquireSyncSlot(): Promise<() => void>
  /** Reports an fsync: its duration, and the bytes of output that it made durable. */
  synced(seconds: number, bytes: number): void
  /** A read found a damaged piece of a host (0: unknown host). */
  damaged(hostId: number, sentence: string): void
  readonly disk?: Disk | undefined
  /** The disk cannot be trusted any more: the caller ends the process. */
  fatal(error: unknown): void
}

/**
 * Output of one task: an append-only log of JSON lines, and an index of fixed-size records. An entry's id is
 * the offset at which it ends, so cursors cost nothing to keep. The log is authoritative; an index that
 * disagrees with it after a crash is rebuilt.
 */
export class TaskLog {
  readonly #file: FileHandle
  readonly #index: FileHandle
  readonly #log: AppendLog<Piece>
  #records: number
  /** Number of the record after a cursor, for recent reads, so that followers of a log need no search. */
  readonly #places = new BoundedMap<number, number>(keptPlaces)
  readonly #events: TaskLogEvents
  readonly #path: string

  private constructor(
    path: string,
    [file, index]: readonly [FileHandle, FileHandle],
    { size, records }: { readonly size: number; readonly records: number },
    events: TaskLogEvents,
  ) {
    this.#path = path
    this.#file = file
    this.#index = index
    this.#records = records
    this.#events = events
    this.#log = new AppendLog<Piece>(
      { path, handle: file, size },
      {
        name: path,
        sync: 'behind',
        turn: () => events.acquireSyncSlot(),
        beside: (batch) => this.#writeIndex(batch),
        written: (batch) => {
          this.#records += batch.length
          events.written()
        },
        synced: (seconds, batch) =>
          events.synced(
            seconds,
            batch.reduce((sum, { item }) => sum + item.bytes, 0),
          ),
        refused: (fault, error) => fault === 'failed' && events.fatal(error),
        disk: events.disk,
      },
    )
  }

  /** Null if there is no log and `create` is false. */
  static async open(directory: string, create: boolean, events: TaskLogEvents): Promise<TaskLog | null> {
    if (create) await mkdir(directory, { recursive: true, mode: 0o700 })
    let files: [FileHandle, FileHandle]
    try {
      files = await openBoth(directory, create)
    } catch (error) {
      if (isMissing(error) && !create) return null
      throw error
    }
    const opened = new TaskLog(join(directory, logFiles[0]), files, await recoverLog(...files), events)
    if (create) {
      await syncDirectory(directory)
      await syncDirectory(dirname(directory))
    }
    return opened
  }

  /** Resolves once the entry is durable; readers see it as soon as it is written. */
  async append(entry: NewEntry): Promise<void> {
    await this.#log.append(lineOf(entry), { entry, bytes: Buffer.byteLength(entry.data) })
  }

  async #writeIndex(batch: readonly Appended<Piece>[]): Promise<void> {
    faultPoint('server.output.written')
    const records = batch.map(({ item, end, length }) =>
      encodeRecord({ ...item.entry, end, length, bytes: item.bytes }),
    )
    const position = this.#records * recordBytes
    try {
      await writeWhole(this.#index.fd, Buffer.concat(records), position)
    } catch (error) {
      await this.#index.truncate(position).catch(() => undefined)
      throw error
    }
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
    if (next >= this.#log.size) return { lines, next }
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
    this.#places.delete(query.after)
    this.#places.set(next, at)
    return { lines, next }
  }

  cursorBeforeLast(tail: number, query: Pick<ReadQuery, 'hostId' | 'stream'>): Promise<number> {
    return cursorBeforeLast(this.#index, { count: this.#records, size: this.#log.size }, tail, query)
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
    await this.#log.close()
    await this.#index.close()
  }

  #damaged({ end: id, hostId, length, stream, sequence }: IndexRecord): StoredLine {
    const whose = hostId === 0 ? '' : ` of ${stream}`
    const damage = `the output is damaged: ${this.#path}, byte ${id - length}: a piece${whose} cannot be shown`
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

  async #load(records: IndexRecord[]): Promise<StoredLine[]> {
    const lines: StoredLine[] = []
    for (let first = 0; first < records.length; ) {
      let last = first
      while (last + 1 < records.length && startOf(records[last + 1]) === records[last]?.end) last++
      const start = startOf(records[first])
      const end = records[last]?.end ?? start
      const buffer = Buffer.allocUnsafe(end - start)
      await this.#file.read(buffer, 0, buffer.length, start)
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

/** Errors: `gone`, with the cursor to continue from. */
function refuse(line: StoredLine | undefined): never {
  throw new RsmError('gone', line?.damage ?? '', {
    hint: `later output is readable: after=${line?.id}`,
  })
}

function decoded({ id, json }: StoredLine): StoredEntry {
  return { id, ...(JSON.parse(json.toString('utf8')) as NewEntry) }
}

async function openBoth(directory: string, create: boolean): Promise<[FileHandle, FileHandle]> {
  const flags = constants.O_RDWR | (create ? constants.O_CREAT : 0)
  const log = await open(join(directory, logFiles[0]), flags, 0o600)
  try {
    return [log, await open(join(directory, logFiles[1]), constants.O_RDWR | constants.O_CREAT, 0o600)]
  } catch (error) {
    await log.close()
    throw error
  }
}
