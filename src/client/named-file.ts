import { RsmError } from '../core/errors.ts'
import { readBoundedFile } from '../disk/bounded-file.ts'
import { whyUnreadable } from '../disk/unreadable.ts'

/** A file that an option or a variable names; `what` is how the message calls it. Errors: `usage`. */
export function readNamedBytes(path: string, what = path): Buffer {
  try {
    return readBoundedFile(path)
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
