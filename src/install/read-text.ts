import { readFileSync } from 'node:fs'
import { RsmError } from '../core/errors.ts'

/** A file's text; null where there is none, or where it is another's to read. */
export function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES') return null
    throw new RsmError('unavailable', `cannot read ${path}: ${message}`, { cause: error })
  }
}
