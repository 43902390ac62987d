import type { FileHandle } from 'node:fs/promises'
import { hasCheck } from '../../../../disk/checked-json.ts'
import { writeWhole } from '../../../../disk/disk.ts'
import { parseEntry } from '../../output-line.ts'
import { encodeRecord, type IndexRecord, readAsFound, recordBytes, startOf } from './index-file.ts'

const recoveryChunk = 1024 * 1024
const newline = 10

/** How far the log reaches, in bytes, and how many records index it. */
interface Recovered {
  size: number
  records: number
}

/**
 * Takes what the index says as far as the log bears it out, reads the rest anew, cuts a torn tail. A line that is damaged
 * stays, so that its reader is told.
 */
export async function recoverLog(log: FileHandle, index: FileHandle): Promise<Recovered> {
  const { size: logSize } = await log.stat()
  const { size: indexSize } = await index.stat()
  const { last, records } = await followIndex(index, logSize)
  const isBorneOut = last !== null && (await isLine(log, last))
  const known = isBorneOut ? { size: last.end, records } : { size: 0, records: 0 }
  const whole = await indexFrom(log, index, known, logSize)
  if (whole.size < logSize) await log.truncate(whole.size)
  if (whole.records * recordBytes < indexSize) await index.truncate(whole.records * recordBytes)
  return whole
}

/**
 * Counts the records that follow each other without a gap; answers the last. The index is not fsynced, so that a loss
 * of power may leave zeros in its middle though its end is there.
 */
async function followIndex(
  index: FileHandle,
  logSize: number,
): Promise<{ last: IndexRecord | null; records: number }> {
  let last: IndexRecord | null = null
  let count = 0
  for (;;) {
    const records = await readAsFound(index, count)
    for (const record of records) {
      if (
        record === null ||
        startOf(record) !== (last?.end ?? 0) ||
        record.length < 2 ||
        record.end > logSize
      )
        return { last, records: count }
      last = record
      count++
    }
    if (records.length === 0) return { last, records: count }
  }
}

/** Whether a line stands there, be it damaged. */
async function isLine(log: FileHandle, record: IndexRecord): Promise<boolean> {
  const from = Math.max(0, startOf(record) - 1)
  const buffer = Buffer.alloc(record.end - from)
  await log.read(buffer, 0, buffer.length, from)
  const line = buffer.subarray(startOf(record) - from)
  const isInPlace = startOf(record) === 0 || buffer[0] === newline
  return (isInPlace && !isTorn(line)) || parseEntry(line.subarray(0, -1)) !== null
}

/** A write that was cut off has no end, or runs of zeros where the file grew first. */
function isTorn(line: Buffer): boolean {
  return line.at(-1) !== newline || line.includes('\0\0')
}

/** Indexes what the log holds past `known`, up to where it is torn. */
async function indexFrom(
  log: FileHandle,
  index: FileHandle,
  known: Recovered,
  logSize: number,
): Promise<Recovered> {
  let { size, records: count } = known
  let rest: Buffer = Buffer.alloc(0)
  let torn = false
  for (let at = known.size; at < logSize && !torn; ) {
    const buffer = Buffer.alloc(Math.min(recoveryChunk, logSize - at))
    const { bytesRead } = await log.read(buffer, 0, buffer.length, at)
    if (bytesRead === 0) break
    at += bytesRead
    rest = Buffer.concat([rest, buffer.subarray(0, bytesRead)])
    const records: Buffer[] = []
    for (let end = rest.indexOf(newline); end >= 0; end = rest.indexOf(newline)) {
      const line = rest.subarray(0, end + 1)
      torn = isTorn(line)
      if (torn) break
      size += line.length
      records.push(recordOf(line, size))
      rest = rest.subarray(end + 1)
    }
    if (!torn && at >= logSize && rest.length > 0 && isLastLine(rest)) {
      // Its end alone is damaged: without one the next line would run into it.
      size += rest.length
      await log.write(Buffer.of(newline), 0, 1, size - 1)
      records.push(recordOf(rest, size))
    }
    await writeWhole(index.fd, Buffer.concat(records), count * recordBytes)
    count += records.length
  }
  return { size, records: count }
}

function isLastLine(tail: Buffer): boolean {
  const json = Buffer.from(tail.subarray(0, -1))
  return hasCheck(json) && parseEntry(json) !== null
}

function recordOf(line: Buffer, end: number): Buffer {
  const entry = parseEntry(line.subarray(0, -1))
  const place = { end, length: line.length }
  return encodeRecord(
    entry
      ? { ...entry, ...place, bytes: Buffer.byteLength(entry.data) }
      : { ...place, hostId: 0, stream: 'stderr', sequence: 0, bytes: 0 },
  )
}
