import { setTimeout as pause } from 'node:timers/promises'
import { type Incoming, retryAfterOf, type Send } from '../../net/request.ts'
import { agentBackoff } from '../link/backoff.ts'

/** Milliseconds before the first retry. */
const firstPause = 2_000
/** Of a server that is just starting, has too much to do, or is away behind its proxy: asking again mends that. */
const passing: ReadonlySet<number> = new Set([429, 502, 503, 504])

/** What asking again does not mend. */
export class Refused extends Error {}

/** A temporary refusal; `retryAfter`: seconds that the server asks to wait. */
export interface Later {
  readonly retryAfter: number | undefined
}

/** Null if the answer is not a temporary refusal. */
export function laterOf({ status, headers }: Pick<Incoming, 'status' | 'headers'>): Later | null {
  return passing.has(status) ? { retryAfter: retryAfterOf(headers) } : null
}

/** Counts attempts against a time, and waits between them. */
export class Patience {
  readonly #deadline: number
  readonly #backoff = agentBackoff(Math.random, firstPause)

  /** Seconds; 0 = without end, as whoever runs this ends it. */
  constructor(timeout: number) {
    this.#deadline = timeout > 0 ? performance.now() + timeout * 1000 : Number.POSITIVE_INFINITY
  }

  /** Resets the backoff, because bytes arrived. */
  advanced(): void {
    this.#backoff.reset()
  }

  /** Throws where the next attempt would come too late. */
  async wait(what: string, reason: string, retryAfter?: number): Promise<void> {
    const left = this.#deadline - performance.now()
    if (left < firstPause) throw new Error(`the ${what} was not done in time: ${reason}`)
    // The last attempt is made right before the end, however long the delay has become.
    await pause(Math.min(this.#backoff.next(retryAfter), Math.max(firstPause, left - firstPause)))
  }
}

interface Source {
  /** On the server. */
  readonly path: string
  readonly headers: Record<string, string>
  /** As it is called in a sentence. */
  readonly name: string
  /** Bytes; the server may not send more. */
  readonly size: number
  /** What a 404 means. */
  readonly absent: string
  /** Seconds until no further attempt is made; 0 = none. */
  readonly timeout: number
}

/** Requests the bytes from `from` on; the server may refuse for now. */
async function ask(
  send: Send,
  { path, headers, absent }: Source,
  from: number,
): Promise<AsyncIterable<Buffer> | Later> {
  const range: Record<string, string> = from > 0 ? { range: `bytes=${from}-` } : {}
  const answer = await send({ method: 'GET', path, headers: { ...headers, ...range } })
  const { status, body } = answer
  if (status === 206) return body as AsyncIterable<Buffer>
  // A server that takes no ranges begins anew.
  if (status === 200) return without(body as AsyncIterable<Buffer>, from)
  body.destroy()
  const later = laterOf(answer)
  if (later !== null) return later
  throw new Refused(`the server answered ${status} to ${path}${status === 404 ? `: ${absent}` : ''}`)
}

async function* without(body: AsyncIterable<Buffer>, first: number): AsyncGenerator<Buffer> {
  let left = first
  for await (const piece of body) {
    if (piece.length > left) yield piece.subarray(left)
    left = Math.max(0, left - piece.length)
  }
}

/**
 * The bytes of a file of the server, in order. Goes on where an attempt was cut, and waits for a server that is away. Throws
 * `Refused` for what no further attempt would mend, Error when the time is over.
 */
export async function* receive(send: Send, source: Source): AsyncGenerator<Buffer> {
  const { size, name, timeout } = source
  const patience = new Patience(timeout)
  let have = 0
  while (have < size) {
    let reason = 'its downloads are all taken'
    let retryAfter: number | undefined
    try {
      const answer = await ask(send, source, have)
      if ('retryAfter' in answer) retryAfter = answer.retryAfter
      else {
        reason = 'it was cut off'
        for await (const piece of answer) {
          have += piece.length
          patience.advanced()
          if (have > size) throw new Refused(`the server sends more than the ${size} bytes of ${name}`)
          yield piece
        }
      }
    } catch (error) {
      if (error instanceof Refused) throw error
      reason = error instanceof Error ? error.message : String(error)
    }
    if (have < size) await patience.wait('download', reason, retryAfter)
  }
}
