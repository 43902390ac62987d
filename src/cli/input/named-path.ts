import { constants, statSync } from 'node:fs'
import { RsmError } from '../../core/errors.ts'
import { makeDirectory, readBoundedFile, whyUnreadable, whyUnwritable } from '../../disk/named-files.ts'

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

/** Whether any user of this machine may read it; a pipe belongs to nobody else. */
export function isReadableByAll(path: string): boolean {
  const { mode } = statSync(path)
  return (mode & constants.S_IFMT) === constants.S_IFREG && (mode & constants.S_IROTH) !== 0
}

/** A secret from a file, without the line end that editors put there; an empty file holds none. */
export function readSecretFile(path: string, option: string): string {
  const secret = readNamedFile(path, option).trim()
  if (secret === '') throw new RsmError('usage', `${path} (${option}) is empty`)
  return secret
}

/** A directory that an option or a variable names, made where there is none; `option` is how it was named. Errors: `usage`. */
export function makeNamedDirectory(path: string, option: string, mode?: number): void {
  if (path === '') throw new RsmError('usage', `${option} needs a directory`)
  try {
    makeDirectory(path, mode)
  } catch (error) {
    throw new RsmError('usage', `can't write into ${option} ${path}: ${whyUnwritable(error)}`, {
      cause: error,
    })
  }
}
