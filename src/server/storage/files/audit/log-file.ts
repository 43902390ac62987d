import { constants } from 'node:fs'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import { type AuditHead, beforeFirst } from '../../../../core/audit.ts'
import { writeWhole } from '../../../../disk/disk.ts'
import { isDiskFull, syncDirectory } from '../../../../disk/durable.ts'
import { parseEntry } from '../../audit/stored-entry.ts'
import { readBackward } from './read.ts'

export const auditFileName = 'audit.log'

/** The log as a start finds it. */
export interface OpenedLog {
  file: FileHandle
  /** All before it is whole lines. */
  size: number
  head: AuditHead
  /** What a crash in mid-write left at the end, now in a file beside the log. */
  cut: { bytes: number; file: string | null } | null
}

/**
 * Opens the log, reading no more than its end. A torn end (no newline, or no entry at the very end) is cut off and kept
 * beside it; what stands before that is left alone, however damaged: `rsm audit verify` has to find it.
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

/** Where the last entry of a file of `size` bytes ends, and what it is. */
export async function lastEntry(file: FileHandle, size: number): Promise<{ size: number; head: AuditHead }> {
  for await (const lines of readBackward(file, size))
    for (const { bytes, offset, whole } of lines) {
      const entry = whole ? parseEntry(bytes) : null
      if (entry) return { size: offset + bytes.length + 1, head: { id: entry.id, hash: entry.hash } }
    }
  return { size: 0, head: beforeFirst }
}

async function keepAside(
  file: FileHandle,
  directory: string,
  from: number,
  to: number,
): Promise<{ bytes: number; file: string | null }> {
  const name = `${auditFileName}.broken-${new Date().toISOString().replaceAll(':', '-')}`
  const kept = await copyTo(join(directory, name), file, from, to).catch((error: unknown) => {
    // What was torn was never acknowledged: a full disk must not keep the server from starting for its sake.
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
