import { RsmError } from '../../core/errors.ts'
import { makeDirectory } from '../../disk/make-directory.ts'

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'you may not',
  EPERM: 'you may not',
  EEXIST: 'it is not a directory',
  ENOENT: 'no directory can be made there',
  ENOTDIR: 'a part of this path is a file',
  EROFS: 'what is mounted there is read-only',
  ENOSPC: 'the disk is full',
}

/** A directory that an option or a variable names, made where there is none; `option` is how it was named. Errors: `usage`. */
export function makeNamedDirectory(path: string, option: string, mode?: number): void {
  if (path === '') throw new RsmError('usage', `${option} names no directory`)
  try {
    makeDirectory(path, mode)
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    throw new RsmError('usage', `can't write into ${option} ${path}: ${reasons[code] ?? message}`, {
      cause: error,
    })
  }
}
