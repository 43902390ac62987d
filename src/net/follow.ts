import { mendable, RsmError } from '../core/errors.ts'
import { Backoff, pause } from './backoff.ts'
import { type ServerEvent, SseParser } from './sse.ts'

export interface FollowOptions {
  readonly signal?: AbortSignal
  /** Called when the connection is lost and will be resumed; `again` where nothing new has come since the last call. */
  readonly onCut?: (error: RsmError, again: boolean) => void
  /** How long a lost connection is resumed, in milliseconds (contract §9: 5 minutes). */
  readonly retryFor?: number
}

/** The bytes of a stream behind an event. Errors: what the server answered instead, or `unreachable`. */
type OpenStream = (lastId: string | undefined) => Promise<AsyncIterable<Uint8Array>>

const pace = { first: 250, longest: 5_000 }
/** A connection that stood for this long was a good one, though it brought nothing new; in milliseconds. */
const standing = 15_000

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
