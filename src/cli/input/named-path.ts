import { constants, statSync } from 'node:fs'
import { RsmError } from '../../core/errors.ts'
import { makeDirectory, readBoundedFile, whyUnreadable, whyUnwritable } from '../../disk/named-files.ts'

/** Reads the file of an option or variable; `what` describes it in messages. Errors: `usage`. */
export function readNamedBytes(path: string, what = path): Buffer {
  try {
    return readBoundedFile(path)
  } catch (error) {
    throw new RsmError('usage', `cannot read ${what}: ${whyUnreadable(error)}`, { cause: error })
  }
}

/** Like `readNamedBytes`, as text; `option` is part of messages. */
export function readNamedFile(path: string, option: string): string {
  return readNamedBytes(path, `${path} (${option})`).toString('utf8')
}

/** Whether every user of this machine can read the file; false for a pipe. */
export function isReadableByAll(path: string): boolean {
  const { mode } = statSync(path)
  return (mode & constants.S_IFMT) === constants.S_IFREG && (mode & constants.S_IROTH) !== 0
}

/** Reads a secret from a file, without surrounding whitespace. Errors: `usage`, also if it is empty. */
export function readSecretFile(path: string, option: string): string {
  const secret = readNamedFile(path, option).trim()
  if (secret === '') throw new RsmError('usage', `${path} (${option}) is empty`)
  return secret
}

/** Creates the directory of an option or variable if missing; `option` is part of messages. Errors: `usage`. */
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
