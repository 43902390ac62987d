import { longestSilence } from '../core/protocol/bounds.ts'
import { followEvents } from '../net/follow.ts'
import type { ServerEvent } from '../net/sse.ts'
import { send } from './api.ts'

interface FollowOptions {
  signal: AbortSignal
  onEvent: (event: ServerEvent) => void
  /** The stream is lost and will be resumed. */
  onCut?: () => void
}

/** What a stream sends, piece by piece. One that falls silent is left; a page that takes its time is no silence. */
async function* pieces(path: string, lastId: string | undefined, signal: AbortSignal) {
  const leave = new AbortController()
  const abort = () => leave.abort()
  const inTime = async <T>(work: Promise<T> | undefined): Promise<T | undefined> => {
    const quiet = setTimeout(abort, longestSilence)
    try {
      return await work
    } finally {
      clearTimeout(quiet)
    }
  }
  const resume: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId }
  const headers = { accept: 'text/event-stream', ...resume }
  signal.addEventListener('abort', abort)
  try {
    const response = await inTime(send('GET', path, { headers, signal: leave.signal }))
    const reader = response?.body?.getReader()
    for (;;) {
      const piece = await inTime(reader?.read())
      if (piece?.value === undefined) return
      yield piece.value
    }
  } finally {
    signal.removeEventListener('abort', abort)
    abort()
  }
}

/**
 * Follows a stream of events until `signal` ends it: a cut is resumed behind the last id. By fetch, because an EventSource
 * sends no token. Rejects with what waiting does not mend.
 */
export async function followStream(path: string, { signal, onEvent, onCut }: FollowOptions): Promise<void> {
  const open = async (lastId: string | undefined) => pieces(path, lastId, signal)
  const options = { signal, retryFor: Number.POSITIVE_INFINITY, onCut: () => onCut?.() }
  try {
    for await (const event of followEvents(open, 'the server', options, (cut) => cut)) {
      if (signal.aborted) return
      onEvent(event)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
