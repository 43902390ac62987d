import { closeSync, mkdirSync, openSync, readSync, rmdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Larger than any file that is read whole, so that an endless one, like /dev/zero, is an error. */
const maxFileBytes = 16 * 1024 * 1024

const writeFaults: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EEXIST: 'it is not a directory',
  ENOENT: 'no directory can be made there',
  ENOTDIR: 'a part of this path is a file',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of the disk is used up',
  EFBIG: 'the file is too large',
  EIO: 'the device reports an error',
}

/** Content of a file that a user named. Errors: those of the system, or larger than 16 MiB. */
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

/** Why a file could not be read, in plain words; `reader` is the user or program that tried. */
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
 * Makes a directory that a user named, and missing parents, each with `mode`; an existing one is unchanged.
 * Returns the created directories, top first. Errors: those of mkdir(2). Node's `recursive` never ends on a
 * file system that reports a missing parent although it exists, such as /proc.
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
      // Another process may have made it meanwhile.
      if (!isDirectory(at)) throw error
    }
  }
  return made
}

/** Removes the directories that `makeDirectory` made, as far as they are empty. */
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
