import type { IncomingHttpHeaders } from 'node:http'

/** Seconds that an answer asks its caller to wait; undefined where it says none, and for a date. */
export function retryAfterOf({ 'retry-after': text }: IncomingHttpHeaders): number | undefined {
  const seconds = text === undefined ? Number.NaN : Number(text)
  return seconds >= 0 && Number.isFinite(seconds) ? seconds : undefined
}
