import type { FileHandle } from 'node:fs/promises'
import { hasCheck } from '../../../../disk/digest.ts'
import { writeWhole } from '../../../../disk/durable.ts'
import { parseEntry } from '../../output-line.ts'
import { encodeRecord, type IndexRecord, readAsFound, recordBytes, startOf } from './index-file.ts'

const recoveryChunk = 1024 * 1024
const newline = 10

/** Size of the log in bytes, and number of its index records. */
interface Recovered {
  size: number
  records: number
}

/**
 * Uses the index as far as the log confirms it, indexes the rest again, and truncates a torn tail. Damaged
 * lines stay, so that their readers get an error.
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
 * Counts the records that follow each other without a gap; returns the last. The index is not fsynced, so
 * that a power loss may leave zeros in its middle even if its end is intact.
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

/** Whether there is a line at this position, even a damaged one. */
async function isLine(log: FileHandle, record: IndexRecord): Promise<boolean> {
  const from = Math.max(0, startOf(record) - 1)
  const buffer = Buffer.alloc(record.end - from)
  await log.read(buffer, 0, buffer.length, from)
  const line = buffer.subarray(startOf(record) - from)
  const isInPlace = startOf(record) === 0 || buffer[0] === newline
  return (isInPlace && !isTorn(line)) || parseEntry(line.subarray(0, -1)) !== null
}

/** An interrupted write has no newline, or runs of zeros where the file grew first. */
function isTorn(line: Buffer): boolean {
  return line.at(-1) !== newline || line.includes('\0\0')
}

/** Indexes the log after `known`, up to a torn line. */
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
      // Only its newline is damaged: restore it, or the next line would run into this one.
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
