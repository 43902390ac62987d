import { constants } from 'node:fs'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import { type AuditHead, beforeFirst } from '../../../core/audit.ts'
import { isDiskFull, nullWhereMissing, syncDirectory, writeWhole } from '../../../disk/durable.ts'
import { parseEntry } from '../audit-entry.ts'

export const auditFileName = 'audit.log'

/** Bytes per read: few enough lines to block the event loop for a few milliseconds only. */
const chunkBytes = 64 * 1024
/** Longest line that the log writes, in bytes. Longer ones are read in pieces, none of them an entry. */
export const longestLine = 256 * 1024

export interface OpenedLog {
  file: FileHandle
  /** Everything before it is whole lines. */
  size: number
  head: AuditHead
  /** End torn by a crash during a write, now in a file beside the log. */
  cut: { bytes: number; file: string | null } | null
}

/**
 * Opens the log, reading only its end. A torn end (no newline, or no entry at the very end) moves to a file
 * beside it. Everything before stays, however damaged, so that `rsm audit verify` finds it.
 */
export async function openLogFile(directory: string): Promise<OpenedLog> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const file = await open(join(directory, auditFileName), constants.O_RDWR | constants.O_CREAT, 0o600)
  try {
    await syncDirectory(directory)
    const { size: found } = await file.stat()
    const { size, head } = await lastEntry(file, found)
    const cut = size < found ? await keepAside(file, directory, size, found) : null
    return { file, size, head, cut }
  } catch (error) {
    await file.close()
    throw error
  }
}

/** End and head of the last entry in a file of `size` bytes. */
export async function lastEntry(file: FileHandle, size: number): Promise<{ size: number; head: AuditHead }> {
  for await (const lines of readBackward(file, size))
    for (const { bytes, offset, whole } of lines) {
      const entry = whole ? parseEntry(bytes) : null
      if (entry) return { size: offset + bytes.length + 1, head: { id: entry.id, hash: entry.hash } }
    }
  return { size: 0, head: beforeFirst }
}

/** Path and size (`found`) of the log in a data directory, and end (`size`) and head of its last entry. */
export async function auditEnd(
  path: string,
): Promise<{ file: string; size: number; found: number; head: AuditHead }> {
  const file = join(path, 'audit', auditFileName)
  const handle = await open(file, 'r').catch(nullWhereMissing)
  if (handle === null) return { file, size: 0, found: 0, head: beforeFirst }
  try {
    const { size: found } = await handle.stat()
    return { file, found, ...(await lastEntry(handle, found)) }
  } finally {
    await handle.close()
  }
}

async function keepAside(
  file: FileHandle,
  directory: string,
  from: number,
  to: number,
): Promise<{ bytes: number; file: string | null }> {
  const name = `${auditFileName}.broken-${new Date().toISOString().replaceAll(':', '-')}`
  const kept = await copyTo(join(directory, name), file, from, to).catch((error: unknown) => {
    // Torn bytes were never acknowledged, so a full disk must not prevent the start because of them.
    if (!isDiskFull(error)) throw error
    return false
  })
  await syncDirectory(directory)
  await file.truncate(from)
  await file.datasync()
  return { bytes: to - from, file: kept ? name : null }
}

async function copyTo(path: string, file: FileHandle, from: number, to: number): Promise<true> {
  const aside = await open(path, 'wx', 0o600)
  try {
    const chunk = Buffer.allocUnsafe(64 * 1024)
    for (let at = from; at < to; ) {
      const { bytesRead } = await file.read(chunk, 0, Math.min(chunk.length, to - at), at)
      if (bytesRead === 0) break
      await writeWhole(aside.fd, chunk.subarray(0, bytesRead), at - from)
      at += bytesRead
    }
    await aside.sync()
    return true
  } finally {
    await aside.close()
  }
}

/** Line as it is in the file, without its newline. */
export interface Line {
  bytes: Buffer
  offset: number
  /** Whether a newline ends it. */
  whole: boolean
}

/** Lines before `end`, last first, in batches between which the event loop is free. */
export async function* readBackward(file: FileHandle, end: number): AsyncGenerator<Line[]> {
  /** End of a line whose start is not read yet. */
  let rest: Buffer = Buffer.alloc(0)
  let whole = false
  for (let at = end; at > 0; ) {
    const from = Math.max(0, at - chunkBytes)
    const chunk = Buffer.allocUnsafe(at - from)
    const { bytesRead } = await file.read(chunk, 0, chunk.length, from)
    // Shorter than before: the file was truncated from outside. Read the rest anyway.
    const text = Buffer.concat([chunk.subarray(0, bytesRead), rest])
    const lines: Line[] = []
    let last = text.length
    for (let newline = text.lastIndexOf(10); newline !== -1; newline = before(text, newline)) {
      const bytes = text.subarray(newline + 1, last)
      if (whole || bytes.length > 0) lines.push({ bytes, offset: from + newline + 1, whole })
      last = newline
      whole = true
    }
    rest = text.subarray(0, last)
    at = from
    if (rest.length > longestLine || (at === 0 && (rest.length > 0 || whole))) {
      lines.push({ bytes: rest, offset: from, whole })
      rest = Buffer.alloc(0)
      whole = false
    }
    yield lines
  }
}

/** `lastIndexOf` from -1 would start at the end again. */
function before(text: Buffer, at: number): number {
  return at === 0 ? -1 : text.lastIndexOf(10, at - 1)
}

/** Whole lines from `from` to `end`, without overlong ones; the event loop is free between batches. */
export async function* readForward(file: FileHandle, from: number, end: number): AsyncGenerator<Buffer[]> {
  let rest: Buffer = Buffer.alloc(0)
  for (let at = from; at < end; ) {
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, end - at))
    const { bytesRead } = await file.read(chunk, 0, chunk.length, at)
    if (bytesRead === 0) return
    at += bytesRead
    const text = Buffer.concat([rest, chunk.subarray(0, bytesRead)])
    const lines: Buffer[] = []
    let start = 0
    for (let newline = text.indexOf(10); newline !== -1; newline = text.indexOf(10, start)) {
      lines.push(text.subarray(start, newline))
      start = newline + 1
    }
    // Drop a line that is too long for an entry; its end does not parse as one either.
    rest = text.length - start > longestLine ? Buffer.alloc(0) : text.subarray(start)
    yield lines
  }
}

/** Offset of the first entry after `id` (or the end), by bisection: ids ascend through the file. */
export async function offsetAfter(file: FileHandle, size: number, id: number): Promise<number> {
  let low = 0
  let high = size
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const found = await entryFrom(file, middle, high)
    if (found === null || found.id > id) high = middle
    else low = found.end
  }
  return low
}

async function entryFrom(
  file: FileHandle,
  from: number,
  limit: number,
): Promise<{ id: number; end: number } | null> {
  let text: Buffer = Buffer.alloc(0)
  // Start one byte earlier to detect a line that begins exactly at `from`.
  const start = Math.max(0, from - 1)
  for (let at = start; at < limit + longestLine; ) {
    const chunk = Buffer.allocUnsafe(4096)
    const { bytesRead } = await file.read(chunk, 0, chunk.length, at)
    if (bytesRead === 0) return null
    text = Buffer.concat([text, chunk.subarray(0, bytesRead)])
    at += bytesRead
    let begin = from === 0 ? 0 : text.indexOf(10) + 1
    if (from > 0 && begin === 0) continue
    for (let end = text.indexOf(10, begin); end !== -1; end = text.indexOf(10, begin)) {
      if (start + begin >= limit) return null
      const entry = parseEntry(text.subarray(begin, end))
      if (entry) return { id: entry.id, end: start + end + 1 }
      begin = end + 1
    }
  }
  return null
}
