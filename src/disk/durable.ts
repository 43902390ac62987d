import { randomBytes } from 'node:crypto'
import { existsSync, fdatasync, ftruncate, write } from 'node:fs'
import { lstat, open, readdir, rename, rm, statfs } from 'node:fs/promises'
import { constants } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { RsmError } from '../core/errors.ts'

/** Suffix of files still being written: any that a crash leaves may be removed. */
export const temporarySuffix = '.tmp'

/** Milliseconds; a younger temporary file may belong to another machine on a shared disk. */
const staleAfter = 10 * 60_000

/** A unique name, because writers must not share one (as in steno; reliability "Facts that bite"). */
export function temporaryName(path: string): string {
  return `${path}.${process.pid}-${randomBytes(6).toString('hex')}${temporarySuffix}`
}

/** Makes the names in a directory durable: a created or renamed file is durable only after this. */
export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Replaces `path` with a finished temporary file that is already synced. */
export async function replaceDurably(temporary: string, path: string): Promise<void> {
  await rename(temporary, path)
  await syncDirectory(dirname(path))
}

/** Replaces `path` with the file or link that `make` creates, under a temporary name until then. */
export async function replaceByNew(path: string, make: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = temporaryName(path)
  try {
    await make(temporary)
    await replaceDurably(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

/** Writes a whole file: a crash at any moment leaves the old file or the new one, never a mix. */
export function writeFileDurably(path: string, data: string | Uint8Array, mode = 0o600): Promise<void> {
  return replaceByNew(path, async (temporary) => {
    const handle = await open(temporary, 'wx', mode)
    try {
      await handle.writeFile(data)
      await handle.sync()
    } finally {
      await handle.close()
    }
  })
}

/** Whether the disk is full: the only disk error that can pass. */
export function isDiskFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')
}

export function isRefusedByFullDisk(error: unknown): boolean {
  return error instanceof Error && isDiskFull(error.cause)
}

export const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'

/** Turns the error of a missing file into null. */
export const nullWhereMissing = (error: unknown): null => {
  if (isMissing(error)) return null
  throw error
}

/** Removes temporary files of `temporaryName(path)` that a killed process left. */
export async function removeStale(path: string): Promise<void> {
  const [directory, base] = [dirname(path), `${basename(path)}.`]
  for (const name of await readdir(directory).catch(() => [])) {
    const [, pid] = (name.startsWith(base) && /^(\d+)-[0-9a-f]{12}\.tmp$/.exec(name.slice(base.length))) || []
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue
    const left = join(directory, name)
    const found = await lstat(left).catch(() => null)
    if (found === null || Date.now() - found.mtimeMs < staleAfter) continue
    // Without the right to remove it, carry on beside it.
    await rm(left, { recursive: true, force: true }).catch(() => undefined)
  }
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** On a signal, calls `remove` and exits with the signal's exit code; returns a function that undoes this. */
export function removeOnSignal(remove: () => void): () => void {
  const onSignal = (signal: NodeJS.Signals) => {
    remove()
    process.exit(128 + constants.signals[signal])
  }
  for (const signal of signals) process.on(signal, onSignal)
  return () => {
    for (const signal of signals) process.off(signal, onSignal)
  }
}

/** Bytes that must fit before a full disk counts as free again. */
const probeBytes = 64 * 1024

/** The system calls that durability depends on; tests inject faults here. */
export interface Disk {
  /** Resolves to the number of bytes written, which may be fewer than given. */
  write(descriptor: number, data: Uint8Array, position: number): Promise<number>
  datasync(descriptor: number): Promise<void>
  truncate(descriptor: number, size: number): Promise<void>
}

export const realDisk: Disk = {
  write: (descriptor, data, position) =>
    new Promise((resolve, reject) => {
      write(descriptor, data, 0, data.length, position, (error, written) =>
        error === null ? resolve(written) : reject(error),
      )
    }),
  datasync: promisify(fdatasync),
  truncate: promisify(ftruncate),
}

/** Bytes of a file system: total, and still writable by this process. */
export interface Room {
  size: number
  available: number
}

export async function writeWhole(
  descriptor: number,
  data: Uint8Array,
  position: number,
  disk: Disk = realDisk,
): Promise<void> {
  for (let done = 0; done < data.length; )
    done += await disk.write(descriptor, data.subarray(done), position + done)
}

/** Whether a file fits beside `path`. The probe is unlinked before it grows, so that no crash leaves it. */
export async function hasRoom(path: string, disk: Disk): Promise<boolean> {
  try {
    const beside = temporaryName(path)
    const handle = await open(beside, 'wx', 0o600)
    try {
      await rm(beside)
      await writeWhole(handle.fd, Buffer.alloc(probeBytes), 0, disk)
      await disk.datasync(handle.fd)
    } finally {
      await handle.close()
    }
    return true
  } catch {
    return false
  }
}

/** Room of a directory's file system; null if it cannot be read. */
export async function roomOf(directory: string): Promise<Room | null> {
  const figures = await statfs(directory).catch(() => null)
  if (figures === null) return null
  const { blocks, bavail, bfree, bsize } = figures
  // Root may also use the reserved blocks.
  return { size: blocks * bsize, available: bsize * (process.getuid?.() === 0 ? bfree : bavail) }
}

/** The file of a log lost its name while it was open. */
export class LogDeleted extends RsmError {
  constructor(path: string, hint: string) {
    super(
      'unavailable',
      `${path} was deleted under the running server: nothing can be written any more, and writes since then are lost`,
      { hint },
    )
  }
}

/** A write or an fsync failed: the content of the file is unknown. */
export function failedLog(name: string, error: unknown): RsmError {
  const cause = error instanceof Error ? error.message : String(error)
  const message = `the disk failed while writing ${name} (${cause}); restart the server`
  return new RsmError('unavailable', message, { cause: error })
}
