import type { FileHandle } from 'node:fs/promises'
import { RsmError } from '../../../../core/errors.ts'
import type { Stream } from '../../../../core/tasks/task.ts'
import type { ReadBackQuery, ReadQuery } from '../../ports/outputs.ts'

/** Position of one entry in the log: it ends before byte `end`, which is its id. */
export interface IndexRecord {
  end: number
  length: number
  /** 0: the host is unreadable. */
  hostId: number
  sequence: number
  stream: Stream
  /** Bytes of its output, as UTF-8. */
  bytes: number
}

/** Fixed size, so that cursors are found by bisection, and a host's entries without reading other output. */
export const recordBytes = 32
const recordsPerRead = 2048
/** Sequences go up to 2^53: base-protocol agents may count microseconds. Bits past 48 have their own byte. */
const sequenceLow = 2 ** 48
const checkAt = 26

/** Entries that one backward read examines, so that rare matches among a million do not block for long. */
const recordsPerReadBack = 65_536
const recordsPerStep = 2048

export function encodeRecord(record: IndexRecord): Buffer {
  const buffer = Buffer.alloc(recordBytes)
  buffer.writeDoubleBE(record.end, 0)
  buffer.writeUInt32BE(record.length, 8)
  buffer.writeUIntBE(record.hostId, 12, 6)
  buffer.writeUIntBE(record.sequence % sequenceLow, 18, 6)
  buffer.writeUInt8(record.stream === 'stdout' ? 1 : 2, 24)
  buffer.writeUInt8(Math.floor(record.sequence / sequenceLow), 25)
  buffer.writeUInt32BE(record.bytes, 28)
  buffer.writeUInt16BE(checkOf(buffer, 0), checkAt)
  return buffer
}

/** Null if the record is damaged. */
function decodeRecord(buffer: Buffer, offset: number): IndexRecord | null {
  const check = buffer.readUInt16BE(offset + checkAt)
  if (check !== 0 && check !== checkOf(buffer, offset)) return null
  return {
    end: buffer.readDoubleBE(offset),
    length: buffer.readUInt32BE(offset + 8),
    hostId: buffer.readUIntBE(offset + 12, 6),
    sequence: buffer.readUIntBE(offset + 18, 6) + buffer.readUInt8(offset + 25) * sequenceLow,
    stream: buffer.readUInt8(offset + 24) === 1 ? 'stdout' : 'stderr',
    bytes: buffer.readUInt32BE(offset + 28),
  }
}

/** Checksum of the rest of a record; detects any flipped bit. Never 0: records of 0.1.0 have that. */
function checkOf(buffer: Buffer, offset: number): number {
  let check = 1
  for (let at = 0; at < recordBytes; at += 2)
    if (at !== checkAt) check = (check * 31 + buffer.readUInt16BE(offset + at)) & 0xffff
  return check || 0xffff
}

/** Up to 2,048 records from number `from`; fewer at the end, null for damaged ones. */
export async function readAsFound(
  file: FileHandle,
  from: number,
  count = recordsPerRead,
): Promise<(IndexRecord | null)[]> {
  const buffer = Buffer.allocUnsafe(Math.min(count, recordsPerRead) * recordBytes)
  const { bytesRead } = await file.read(buffer, 0, buffer.length, from * recordBytes)
  const records: (IndexRecord | null)[] = []
  for (let offset = 0; offset + recordBytes <= bytesRead; offset += recordBytes)
    records.push(decodeRecord(buffer, offset))
  return records
}

/** Like `readAsFound`. Errors: `unavailable` for a record that was damaged since the index was opened. */
export async function readRecords(file: FileHandle, from: number, count?: number): Promise<IndexRecord[]> {
  const records = await readAsFound(file, from, count)
  return records.map((record, at) => {
    if (record !== null) return record
    throw new RsmError('unavailable', `an index of output is damaged: output.idx, record ${from + at}`, {
      hint: 'restart the server: it rebuilds the index from the log',
    })
  })
}

/** Number of the first of `count` records whose id is past `after`. */
export async function firstAfter(file: FileHandle, count: number, after: number): Promise<number> {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >> 1
    const [record] = await readRecords(file, middle, 1)
    if (record && record.end <= after) low = middle + 1
    else high = middle
  }
  return low
}

/** Start of an entry in the log; -1 without one. */
export function startOf(record: IndexRecord | undefined): number {
  return record ? record.end - record.length : -1
}

/** Whether an entry matches host and stream of a query; one of an unreadable host always does. */
export function matches(record: IndexRecord, query: Pick<ReadQuery, 'hostId' | 'stream'>): boolean {
  return (
    (query.hostId === undefined || record.hostId === query.hostId || record.hostId === 0) &&
    (query.stream === undefined || record.stream === query.stream || record.hostId === 0)
  )
}

/** Positions of the last entries before a cursor, and the cursors beside them. */
interface RecordsBefore {
  readonly wanted: IndexRecord[]
  readonly next: number
  readonly previous: number
}

/** Matching entries among the first `count` records before a cursor, up to about `budget` bytes of log. */
export async function recordsBefore(
  index: FileHandle,
  count: number,
  query: ReadBackQuery,
  budget: number,
): Promise<RecordsBefore> {
  const wanted: IndexRecord[] = []
  const end = await firstAfter(index, count, query.before - 1)
  const [last] = end > 0 ? await readRecords(index, end - 1, 1) : []
  let left = budget
  let first = end
  let previous = query.before
  search: for await (const records of backwards(index, end, Math.max(0, end - recordsPerReadBack)))
    for (const record of records) {
      if (left <= 0 || wanted.length >= query.limit) break search
      first--
      previous = record.end
      if (!matches(record, query)) continue
      wanted.push(record)
      left -= record.length
    }
  return { wanted: wanted.reverse(), next: last?.end ?? 0, previous: first === 0 ? 0 : previous }
}

/** Cursor that the last `tail` matching entries of the first `count` follow; `size` is the end of the log. */
export async function cursorBeforeLast(
  index: FileHandle,
  { count, size }: { readonly count: number; readonly size: number },
  tail: number,
  query: Pick<ReadQuery, 'hostId' | 'stream'>,
): Promise<number> {
  if (tail <= 0) return size
  let left = tail
  for await (const records of backwards(index, count))
    for (const record of records) {
      if (!matches(record, query)) continue
      left--
      if (left === 0) return record.end - record.length
    }
  return 0
}

/** Records below number `end` in chunks, last one first. */
async function* backwards(index: FileHandle, end: number, lowest = 0): AsyncGenerator<IndexRecord[]> {
  for (let at = end; at > lowest; ) {
    const from = Math.max(lowest, at - recordsPerStep)
    yield (await readRecords(index, from, at - from)).reverse()
    at = from
  }
}
