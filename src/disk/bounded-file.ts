import { closeSync, openSync, readSync } from 'node:fs'

/** More than anything that is read as a whole: a file without an end, like /dev/zero, is told and not read on. */
const maxFileBytes = 16 * 1024 * 1024

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
