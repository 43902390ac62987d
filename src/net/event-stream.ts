import { mendable, RsmError } from '../core/errors.ts'
import { Backoff, pause } from './backoff.ts'

/** A longer line cannot be an event of rsm. */
const maxLineChars = 256 * 1024 * 1024

const pace = { first: 250, longest: 5_000 }
/** Milliseconds after which a connection counts as good although it delivered nothing new. */
const standing = 15_000

/** A server-sent event (WHATWG HTML §9.2); `id` is the last ID in the stream. */
export interface ServerEvent {
  readonly event: string
  readonly data: string
  readonly id: string | undefined
}

export interface FollowOptions {
  readonly signal?: AbortSignal
  /** The connection is lost and will be resumed; `again` if nothing has arrived since the last call. */
  readonly onCut?: (error: RsmError, again: boolean) => void
  /** Milliseconds for which a lost connection is resumed (contract §9: 5 minutes). */
  readonly retryFor?: number
}

/** Opens the stream after an event. Errors: the server's error response, or `unreachable`. */
type OpenStream = (lastId: string | undefined) => Promise<AsyncIterable<Uint8Array>>

/** Parses events from the bytes of a stream, however these are split. */
export class SseParser {
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  /** Pieces of the unfinished line, joined once: repeated joins would take quadratic time. */
  #pieces: string[] = []
  #length = 0
  #event = ''
  #data: string[] = []
  #id: string | undefined
  /** As `#id`, but only of complete events: an ID whose event was cut off does not count. */
  #lastId: string | undefined

  /** `id`: last ID of the stream that this one continues. */
  constructor(id?: string) {
    this.#id = id
    this.#lastId = id
  }

  /** Last ID in the stream, with an event or alone; sent back as `Last-Event-ID`. */
  get lastId(): string | undefined {
    return this.#lastId
  }

  /** Returns the events that these bytes complete. */
  push(bytes: Uint8Array): ServerEvent[] {
    const text = this.#decoder.decode(bytes, { stream: true })
    const events: ServerEvent[] = []
    let start = 0
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      this.#pieces.push(text.slice(start, end))
      const line = this.#pieces.join('')
      this.#pieces = []
      this.#length = 0
      this.#line(line.endsWith('\r') ? line.slice(0, -1) : line, events)
      start = end + 1
    }
    if (start < text.length) {
      this.#pieces.push(text.slice(start))
      this.#length += text.length - start
      if (this.#length > maxLineChars) throw new RsmError('too_large', 'an event of the server is too large')
    }
    return events
  }

  #line(line: string, events: ServerEvent[]): void {
    if (line === '') {
      this.#lastId = this.#id
      if (this.#data.length > 0)
        events.push({ event: this.#event || 'message', data: this.#data.join('\n'), id: this.#id })
      this.#event = ''
      this.#data = []
      return
    }
    const colon = line.indexOf(':')
    if (colon === 0) return
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (field === 'event') this.#event = value
    else if (field === 'data') this.#data.push(value)
    else if (field === 'id') this.#id = value
  }
}

/**
 * Events of an endless stream; after a lost connection it is resumed after the last ID. Rejects with an error
 * that retries cannot fix, with `givenUp` of a loss that lasts for `retryFor`, and when `signal` aborts.
 */
export async function* followEvents(
  open: OpenStream,
  server: string,
  { signal, onCut, retryFor = 300_000 }: FollowOptions,
  givenUp: (cut: RsmError) => RsmError,
): AsyncGenerator<ServerEvent> {
  const backoff = new Backoff(pace)
  let lastId: string | undefined
  let failingSince: number | undefined
  for (;;) {
    const parser = new SseParser(lastId)
    let since: number | undefined
    let cut = new RsmError('unreachable', `lost the connection to ${server}`)
    try {
      for await (const bytes of await open(lastId))
        for (const event of parser.push(bytes)) {
          since ??= performance.now()
          yield event
        }
    } catch (error) {
      if (signal?.aborted === true) throw error
      if (!(error instanceof RsmError)) cut = new RsmError(cut.code, cut.message, { cause: error })
      else if (mendable(error)) cut = error
      else throw error
    }
    const now = performance.now()
    // A server that accepts and closes at once counts as unreachable.
    if (parser.lastId !== lastId || (since !== undefined && now - since >= standing)) {
      failingSince = undefined
      backoff.reset()
    }
    lastId = parser.lastId
    const isAgain = failingSince !== undefined
    failingSince ??= now
    if (!isAgain || since !== undefined) onCut?.(cut, isAgain)
    if (now - failingSince >= retryFor) throw givenUp(cut)
    await pause(backoff.next(), signal)
    signal?.throwIfAborted()
  }
}
