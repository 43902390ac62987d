import type { FileHandle } from 'node:fs/promises'
import { encodeRecord, type IndexRecord, readRecords, recordBytes, startOf } from './index-file.ts'
import type { NewEntry } from './outputs.ts'
import { writeAll } from './write-all.ts'

const recoveryChunk = 1024 * 1024

/** How far the log reaches, in bytes, and how many records index it. */
interface Recovered {
  size: number
  records: number
}

/** Takes what the index says as far as the log bears it out, reads the rest anew, cuts a torn tail. */
export async function recoverLog(log: FileHandle, index: FileHandle): Promise<Recovered> {
  const { size: logSize } = await log.stat()
  const { size: indexSize } = await index.stat()
  const { last, records } = await followIndex(index, logSize)
  const isBorneOut = last !== null && (await isEntry(log, last))
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
    const records = await readRecords(index, count)
    for (const record of records) {
      if (startOf(record) !== (last?.end ?? 0) || record.length < 2 || record.end > logSize)
        return { last, records: count }
      last = record
      count++
    }
    if (records.length === 0) return { last, records: count }
  }
}

async function isEntry(log: FileHandle, record: IndexRecord): Promise<boolean> {
  const buffer = Buffer.alloc(record.length)
  await log.read(buffer, 0, record.length, startOf(record))
  return parseEntry(buffer) !== null
}

/** Indexes what the log holds past `known`, up to the first line that is no entry. */
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
    for (let newline = rest.indexOf(10); newline >= 0; newline = rest.indexOf(10)) {
      const entry = parseEntry(rest.subarray(0, newline + 1))
      if (!entry) {
        torn = true
        break
      }
      size += newline + 1
      const bytes = Buffer.byteLength(entry.data)
      records.push(encodeRecord({ ...entry, end: size, length: newline + 1, bytes }))
      rest = rest.subarray(newline + 1)
    }
    await writeAll(index, records, count * recordBytes)
    count += records.length
  }
  return { size, records: count }
}

function parseEntry(line: Buffer): NewEntry | null {
  if (line.at(-1) !== 10) return null
  try {
    const entry = JSON.parse(line.toString('utf8')) as Partial<NewEntry> | null
    return typeof entry?.data === 'string' && typeof entry.hostId === 'number' ? (entry as NewEntry) : null
  } catch {
    return null
  }
}
