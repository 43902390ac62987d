import { RsmError } from '../../../../core/errors.ts'
import type { SentError } from './messages.ts'

/** What crosses of an error: of one that is none of ours nothing but that there was one. */
export function sentError(error: unknown): SentError {
  if (!(error instanceof RsmError))
    return { code: 'internal', message: 'the server of the session failed', fields: [] }
  const { code, message, fields, hint, retryAfter } = error
  return { code, message, fields, hint, retryAfter }
}

export function errorOf({ code, message, fields, hint, retryAfter }: SentError): RsmError {
  return new RsmError(code, message, {
    fields,
    ...(hint === undefined ? {} : { hint }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  })
}

/** The way to the server of a session is lost, or nobody answers there. */
export const wayLost = (message = 'The server of the session cannot be reached just now'): RsmError =>
  new RsmError('unavailable', message, { retryAfter: 1 })
