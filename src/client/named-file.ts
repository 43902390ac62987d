import { closeSync, openSync, readSync } from 'node:fs'
import { RsmError } from '../core/errors.ts'
import { whyUnreadable } from '../disk/unreadable.ts'

/** More than anything that a server takes: a file without an end, like /dev/zero, is told and not read on. */
const maxFileBytes = 16 * 1024 * 1024

function readBytes(path: string): Buffer {
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

/** A file that an option or a variable names; `what` is how the message calls it. Errors: `usage`. */
export function readNamedBytes(path: string, what = path): Buffer {
  try {
    return readBytes(path)
  } catch (error) {
    throw new RsmError('usage', `cannot read ${what}: ${whyUnreadable(error)}`, { cause: error })
  }
}

/** Its text; `option` is how it was named, for the message. */
export function readNamedFile(path: string, option: string): string {
  return readNamedBytes(path, `${path} (${option})`).toString('utf8')
}

/** A secret from a file, without the line end that editors put there; an empty file holds none. */
export function readSecretFile(path: string, option: string): string {
  const secret = readNamedFile(path, option).trim()
  if (secret === '') throw new RsmError('usage', `${path} (${option}) is empty`)
  return secret
}
