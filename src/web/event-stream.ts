import { type ServerEvent, SseTextParser } from '../client/http/sse-text.ts'
import { RsmError } from '../core/errors.ts'
import { isMendable, send } from './api.ts'

/** Without a byte for so long the connection counts as lost; comments come every 15 s (contract §5). */
const silence = 45_000
const firstPause = 500
const longestPause = 5_000

interface FollowOptions {
  signal: AbortSignal
  onEvent(event: ServerEvent): void
  /** The stream is lost, and is taken up again; called once for each loss. */
  onCut?(): void
}

export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms)
    function done() {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    signal.addEventListener('abort', done)
  })
}

async function connection(path: string, parser: SseTextParser, options: FollowOptions): Promise<void> {
  const leave = new AbortController()
  const abort = () => leave.abort()
  options.signal.addEventListener('abort', abort)
  let quiet = setTimeout(abort, silence)
  try {
    const resume: Record<string, string> =
      parser.lastId === undefined ? {} : { 'last-event-id': parser.lastId }
    const response = await send('GET', path, {
      headers: { accept: 'text/event-stream', ...resume },
      signal: leave.signal,
    })
    const reader = response.body?.getReader()
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
    for (;;) {
      const piece = await reader?.read()
      if (piece?.value === undefined) return
      clearTimeout(quiet)
      quiet = setTimeout(abort, silence)
      for (const event of parser.pushText(decoder.decode(piece.value, { stream: true }))) {
        if (options.signal.aborted) return
        options.onEvent(event)
      }
    }
  } catch (error) {
    if (error instanceof RsmError) throw error
    throw new RsmError('unreachable', 'The stream was cut', { cause: error })
  } finally {
    clearTimeout(quiet)
    options.signal.removeEventListener('abort', abort)
    leave.abort()
  }
}

/**
 * Follows a stream of events until `signal` ends it: a cut is taken up again behind the last id. By fetch, because an
 * EventSource sends no token. Rejects with what waiting does not mend.
 */
export async function followStream(path: string, options: FollowOptions): Promise<void> {
  const { signal } = options
  let lastId: string | undefined
  let wait = firstPause
  let isCut = false
  while (!signal.aborted) {
    const parser = new SseTextParser(lastId)
    const onEvent = (event: ServerEvent) => {
      wait = firstPause
      isCut = false
      options.onEvent(event)
    }
    try {
      await connection(path, parser, { ...options, onEvent })
    } catch (error) {
      if (!signal.aborted && !isMendable(error)) throw error
    }
    if (signal.aborted) return
    lastId = parser.lastId
    if (!isCut) options.onCut?.()
    isCut = true
    await pause(wait, signal)
    wait = Math.min(wait * 2, longestPause)
  }
}
