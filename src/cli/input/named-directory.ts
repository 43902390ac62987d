import { RsmError } from '../../core/errors.ts'
import { makeDirectory } from '../../disk/make-directory.ts'
import { whyUnwritable } from '../../disk/unwritable.ts'

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
