import { mendable, RsmError } from '../core/errors.ts'
import { Backoff, pause } from './backoff.ts'

/** A line longer than this is no event of ours. */
const maxLineChars = 256 * 1024 * 1024

const pace = { first: 250, longest: 5_000 }
/** A connection that stood for this long was a good one, though it brought nothing new; in milliseconds. */
const standing = 15_000

/** One server-sent event (WHATWG HTML §9.2); `id` is the last one that the stream has named. */
export interface ServerEvent {
  readonly event: string
  readonly data: string
  readonly id: string | undefined
}

export interface FollowOptions {
  readonly signal?: AbortSignal
  /** Called when the connection is lost and will be resumed; `again` where nothing new has come since the last call. */
  readonly onCut?: (error: RsmError, again: boolean) => void
  /** How long a lost connection is resumed, in milliseconds (contract §9: 5 minutes). */
  readonly retryFor?: number
}

/** The bytes of a stream behind an event. Errors: what the server answered instead, or `unreachable`. */
type OpenStream = (lastId: string | undefined) => Promise<AsyncIterable<Uint8Array>>

/** Turns the bytes of a stream into events, however they are cut. */
export class SseParser {
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  /** Pieces of the unfinished line: joined once, so a long line costs its length and not its square. */
  #pieces: string[] = []
  #length = 0
  #event = ''
  #data: string[] = []
  #id: string | undefined
  /** As `#id`, but of whole events: an id whose event was cut off has not been seen. */
  #lastId: string | undefined

  /** `id` is the last one of the stream that this one continues. */
  constructor(id?: string) {
    this.#id = id
    this.#lastId = id
  }

  /** The last id that the stream has named, with an event or alone: what goes back as `Last-Event-ID`. */
  get lastId(): string | undefined {
    return this.#lastId
  }

  /** The events that these bytes complete. */
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
 * The events of a stream of `server` that has no end of its own: after a cut it is resumed behind the last id. Rejects with what
 * waiting cannot mend, with what `givenUp` makes of a cut that lasts for `retryFor`, and when `signal` aborts.
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
    // A server that greets and hangs up is no better than one that is away.
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
