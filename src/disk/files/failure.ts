import { userInfo } from 'node:os'
import { shownNames } from './byte-names.ts'

/** Why an order for files is not carried out, as a sentence. */
export class Failure extends Error {
  /** 126: nothing of it could begin. */
  readonly exitCode: 1 | 126
  /** Of the system, where that refused something. */
  readonly code: string | undefined

  constructor(sentence: string, exitCode: 1 | 126 = 1, code?: string) {
    super(shownNames(sentence))
    this.exitCode = exitCode
    this.code = code
  }
}

/** Which call of the system was refused with which code; null where it was none. */
export function codeOf(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null
}

/** In the system's own words, but with the path that the order means instead of one of /proc. */
export function refusedBy(error: unknown, path: string, doing: string): unknown {
  const code = codeOf(error)
  if (error instanceof Failure || code === null) return error
  const words = /^[A-Z0-9]+: ([^,]+)/.exec((error as Error).message)?.[1] ?? code
  return new Failure(`${doing} ${path}: ${words} (${code})`, 1, code)
}

/** The user of this process; a number where the host has no name for it. */
export function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `user ${process.geteuid?.()}`
  }
}

/** Names the directory and the user, not the temporary file that could not be made there. */
export function refusedIn(error: unknown, directory: string): unknown {
  const refusal = refusedBy(error, `in ${directory} as ${userName()}`, 'write')
  return codeOf(refusal) === 'EPERM' ? hinted(refusal as Failure, 'is it immutable (lsattr -d)?') : refusal
}

/** Adds a likely cause, or what to do. */
export const hinted = ({ message, code }: Failure, hint: string): Failure =>
  new Failure(`${message}; ${hint}`, 1, code)
