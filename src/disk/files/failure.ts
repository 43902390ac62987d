import { userInfo } from 'node:os'
import { shownNames } from './byte-names.ts'

/** Error of an order for files, as a sentence for people. */
export class Failure extends Error {
  /** 126: nothing was started. */
  readonly exitCode: 1 | 126
  readonly code: string | undefined

  constructor(sentence: string, exitCode: 1 | 126 = 1, code?: string) {
    super(shownNames(sentence))
    this.exitCode = exitCode
    this.code = code
  }
}

/** Error code of a failed system call; null for other errors. */
export function codeOf(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null
}

/** Keeps the system's own words, but names the path of the order instead of one in /proc. */
export function refusedBy(error: unknown, path: string, doing: string): unknown {
  const code = codeOf(error)
  if (error instanceof Failure || code === null) return error
  const words = /^[A-Z0-9]+: ([^,]+)/.exec((error as Error).message)?.[1] ?? code
  return new Failure(`${doing} ${path}: ${words} (${code})`, 1, code)
}

/** Name of the current user; its number if the host has no name for it. */
export function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `user ${process.geteuid?.()}`
  }
}

/** Names the directory and the user instead of the temporary file that could not be created. */
export function refusedIn(error: unknown, directory: string): unknown {
  const refusal = refusedBy(error, `in ${directory} as ${userName()}`, 'write')
  return codeOf(refusal) === 'EPERM' ? hinted(refusal as Failure, 'is it immutable (lsattr -d)?') : refusal
}

/** Adds a likely cause or a remedy. */
export const hinted = ({ message, code }: Failure, hint: string): Failure =>
  new Failure(`${message}; ${hint}`, 1, code)
