import type { IncomingHttpHeaders } from 'node:http'

/** Seconds of a Retry-After header; undefined if it is missing, or is a date. */
export function retryAfterOf({ 'retry-after': text }: IncomingHttpHeaders): number | undefined {
  const seconds = text === undefined ? Number.NaN : Number(text)
  return seconds >= 0 && Number.isFinite(seconds) ? seconds : undefined
}
