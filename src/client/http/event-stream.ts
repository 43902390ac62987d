import { setTimeout as delay } from 'node:timers/promises'
import { RsmError } from '../../core/errors.ts'
import type { Api } from './api.ts'
import { SseParser } from './sse.ts'
import type { ServerEvent } from './sse-text.ts'

export interface StreamOptions {
  readonly signal?: AbortSignal
  /** Told when the connection is lost and taken up again; `again` where nothing new has come since it was told before. */
  readonly onCut?: (error: RsmError, again: boolean) => void
  /** How long a lost connection is taken up again, in milliseconds (contract §9: 5 minutes). */
  readonly retryFor?: number
  /** Without a byte for so long the connection counts as lost; comments come every 15 s (contract §5). */
  readonly silence?: number
}

const firstPause = 250
const longestPause = 5_000
/** A connection that stood for so long was a good one, though nothing new was to be told. */
const standing = 15_000

/** Faults that waiting can mend; anything else (401, 404, 410) is final. */
export function mendable(error: unknown): error is RsmError {
  return (
    error instanceof RsmError && ['unreachable', 'unavailable', 'internal', 'too_many'].includes(error.code)
  )
}

async function* connection(
  api: Api,
  path: string,
  parser: SseParser,
  { silence = 45_000, signal }: StreamOptions,
): AsyncGenerator<ServerEvent> {
  const resume: Record<string, string> = parser.lastId === undefined ? {} : { 'last-event-id': parser.lastId }
  const body = await api.stream(path, { accept: 'text/event-stream', ...resume }, signal)
  // While the reader takes its time nothing is read, which is no silence of the server's.
  let isTaken = true
  const quiet = setTimeout(() => {
    if (isTaken) body.destroy(new Error('no sign of life'))
    else quiet.refresh()
  }, silence)
  quiet.unref()
  try {
    for await (const chunk of body) {
      isTaken = false
      yield* parser.push(chunk as Buffer)
      isTaken = true
      quiet.refresh()
    }
  } catch (error) {
    if (signal?.aborted === true || error instanceof RsmError) throw error
    throw new RsmError('unreachable', `lost the connection to ${api.url}`, { cause: error })
  } finally {
    clearTimeout(quiet)
    body.destroy()
  }
}

/**
 * The events of a stream that has no end of its own: a cut is taken up again behind the last id. When that fails for
 * `retryFor`, rejects with what `givenUp` makes of it. `path` hears whether a stream is taken up.
 */
export async function* followStream(
  api: Api,
  path: (resumed: boolean) => string,
  options: StreamOptions,
  givenUp: (cut: RsmError) => RsmError,
): AsyncGenerator<ServerEvent> {
  const { retryFor = 300_000, signal } = options
  let lastId: string | undefined
  let failingSince: number | undefined
  let pause = firstPause
  for (;;) {
    const parser = new SseParser(lastId)
    let since: number | undefined
    let cut = new RsmError('unreachable', `lost the connection to ${api.url}`)
    try {
      for await (const event of connection(api, path(lastId !== undefined), parser, options)) {
        since ??= performance.now()
        yield event
      }
    } catch (error) {
      if (!mendable(error)) throw error
      cut = error
    }
    const now = performance.now()
    // A server that greets and hangs up is no better than one that is away.
    if (parser.lastId !== lastId || (since !== undefined && now - since >= standing)) {
      failingSince = undefined
      pause = firstPause
    }
    lastId = parser.lastId
    const isAgain = failingSince !== undefined
    failingSince ??= now
    if (!isAgain || since !== undefined) options.onCut?.(cut, isAgain)
    if (now - failingSince >= retryFor) throw givenUp(cut)
    await delay(Math.min(pause, longestPause), undefined, signal === undefined ? {} : { signal })
    pause = Math.min(pause * 2, longestPause)
  }
}
