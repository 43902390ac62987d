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
