import type { FileHandle } from 'node:fs/promises'
import type { Stream } from '../../core/protocol/http/logs.ts'
import type { ReadQuery } from './outputs.ts'

/** Where one entry stands in the log: it ends before byte `end`, which is its id. */
export interface IndexRecord {
  end: number
  length: number
  hostId: number
  sequence: number
  stream: Stream
  /** Bytes of output in it, as UTF-8. */
  bytes: number
}

/** Fixed size, so that a cursor is found by bisection and a host's entries without reading the others' output. */
export const recordBytes = 32
const recordsPerRead = 2048
/** A sequence goes up to 2^53 (a seed-only agent may count in microseconds): what is past 48 bits has a byte of its own. */
const low = 2 ** 48

export function encodeRecord(record: IndexRecord): Buffer {
  const buffer = Buffer.alloc(recordBytes)
  buffer.writeDoubleBE(record.end, 0)
  buffer.writeUInt32BE(record.length, 8)
  buffer.writeUIntBE(record.hostId, 12, 6)
  buffer.writeUIntBE(record.sequence % low, 18, 6)
  buffer.writeUInt8(record.stream === 'stdout' ? 1 : 2, 24)
  buffer.writeUInt8(Math.floor(record.sequence / low), 25)
  buffer.writeUInt32BE(record.bytes, 28)
  return buffer
}

function decodeRecord(buffer: Buffer, offset: number): IndexRecord {
  return {
    end: buffer.readDoubleBE(offset),
    length: buffer.readUInt32BE(offset + 8),
    hostId: buffer.readUIntBE(offset + 12, 6),
    sequence: buffer.readUIntBE(offset + 18, 6) + buffer.readUInt8(offset + 25) * low,
    stream: buffer.readUInt8(offset + 24) === 1 ? 'stdout' : 'stderr',
    bytes: buffer.readUInt32BE(offset + 28),
  }
}

/** Up to 2,048 records from number `from`; fewer than asked for at the end. */
export async function readRecords(
  file: FileHandle,
  from: number,
  count = recordsPerRead,
): Promise<IndexRecord[]> {
  const buffer = Buffer.allocUnsafe(Math.min(count, recordsPerRead) * recordBytes)
  const { bytesRead } = await file.read(buffer, 0, buffer.length, from * recordBytes)
  const records: IndexRecord[] = []
  for (let offset = 0; offset + recordBytes <= bytesRead; offset += recordBytes)
    records.push(decodeRecord(buffer, offset))
  return records
}

/** The number of the first of `count` records whose id is past `after`. */
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

/** Where an entry begins in the log; -1 without one. */
export function startOf(record: IndexRecord | undefined): number {
  return record ? record.end - record.length : -1
}

/** Whether an entry is of the host and stream that are asked for. */
export function matches(record: IndexRecord, query: Pick<ReadQuery, 'hostId' | 'stream'>): boolean {
  return (
    (query.hostId === undefined || record.hostId === query.hostId) &&
    (query.stream === undefined || record.stream === query.stream)
  )
}
