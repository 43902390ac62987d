import { readFileSync } from 'node:fs'
import { RsmError } from '../core/errors.ts'

const plainly: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'you may not read it',
  EISDIR: 'it is a directory',
}

/** The text of a file that an option or a variable names; `option` is how it was named, for the message. */
export function readNamedFile(path: string, option: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    throw new RsmError('usage', `cannot read ${path} (${option}): ${plainly[code] ?? message}`, {
      cause: error,
    })
  }
}

/** A secret from a file, without the line end that editors put there; an empty file holds none. */
export function readSecretFile(path: string, option: string): string {
  const secret = readNamedFile(path, option).trim()
  if (secret === '') throw new RsmError('usage', `${path} (${option}) is empty`)
  return secret
}
