import { closeSync, mkdirSync, openSync, readSync, rmdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** More than anything that is read as a whole: a file without an end, like /dev/zero, is told and not read on. */
const maxFileBytes = 16 * 1024 * 1024

const writeFaults: Readonly<Record<string, string>> = {
  EACCES: 'you may not',
  EPERM: 'you may not',
  EEXIST: 'it is not a directory',
  ENOENT: 'no directory can be made there',
  ENOTDIR: 'a part of this path is a file',
  EROFS: 'what is mounted there is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of the disk is used up',
  EFBIG: 'the file has become too large',
  EIO: 'the device reports an error',
}

/** All of a file that somebody named. Errors: those of the system, and that it is larger than 16 MiB. */
export function readBoundedFile(path: string): Buffer {
  const file = openSync(path, 'r')
  try {
    const chunks: Buffer[] = []
    for (let size = 0; ; ) {
      const chunk = Buffer.allocUnsafe(64 * 1024)
      const count = readSync(file, chunk)
      if (count === 0) return Buffer.concat(chunks)
      chunks.push(chunk.subarray(0, count))
      size += count
      if (size > maxFileBytes) throw new Error('it is larger than 16 MiB')
    }
  } finally {
    closeSync(file)
  }
}

/** Why a file could not be read, in plain words; `reader` is who tried. */
export function whyUnreadable(error: unknown, reader = 'you'): string {
  const readFaults: Readonly<Record<string, string>> = {
    ENOENT: 'there is no such file',
    EACCES: `${reader} may not read it`,
    EISDIR: 'it is a directory',
  }
  const { code = '', message } = error as NodeJS.ErrnoException
  return readFaults[code] ?? message
}

/** Why something could not be written, in plain words. */
export function whyUnwritable(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return writeFaults[code] ?? message
}

/**
 * Makes a directory that a user named, with what is missing above it, each of `mode`; one that is there stays as it is.
 * Node's own `recursive` never ends where a file system makes nothing and says that it is the parent that is missing, as
 * /proc does. Answers those that it made, from the top. Errors: those of mkdir(2).
 */
export function makeDirectory(path: string, mode = 0o777): string[] {
  const missing: string[] = []
  const made: string[] = []
  for (let at = resolve(path); ; at = dirname(at)) {
    try {
      mkdirSync(at, { mode })
      made.push(at)
      break
    } catch (error) {
      if (isDirectory(at)) break
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || at === dirname(at)) throw error
      missing.push(at)
    }
  }
  for (const at of missing.reverse()) {
    try {
      mkdirSync(at, { mode })
      made.push(at)
    } catch (error) {
      // Somebody else may have made it meanwhile.
      if (!isDirectory(at)) throw error
    }
  }
  return made
}

/** Removes directories that `makeDirectory` made, where nothing came into them. */
export function removeEmpty(made: readonly string[]): void {
  for (const directory of made.toReversed())
    try {
      rmdirSync(directory)
    } catch {
      // It is in use, or gone.
      return
    }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}
