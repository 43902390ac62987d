import { setTimeout as pause } from 'node:timers/promises'
import { type Incoming, retryAfterOf, type Send } from '../../net/request.ts'
import { agentBackoff } from '../link/backoff.ts'

/** Milliseconds before the first retry. */
const firstPause = 2_000
/** Statuses of a server that is starting, overloaded or down behind its proxy: retry. */
const passing: ReadonlySet<number> = new Set([429, 502, 503, 504])

/** A permanent refusal: a retry does not help. */
export class Refused extends Error {}

/** A temporary refusal; `retryAfter`: seconds that the server asks to wait. */
export interface Later {
  readonly retryAfter: number | undefined
}

export function laterOf({ status, headers }: Pick<Incoming, 'status' | 'headers'>): Later | null {
  return passing.has(status) ? { retryAfter: retryAfterOf(headers) } : null
}

/** Limits attempts by time, and waits between them. */
export class Patience {
  readonly #deadline: number
  readonly #backoff = agentBackoff(Math.random, firstPause)

  /** Seconds; 0 = no limit, because the caller ends it. */
  constructor(timeout: number) {
    this.#deadline = timeout > 0 ? performance.now() + timeout * 1000 : Number.POSITIVE_INFINITY
  }

  /** Resets the backoff, because bytes arrived. */
  advanced(): void {
    this.#backoff.reset()
  }

  /** Throws if the next attempt would be too late. */
  async wait(what: string, reason: string, retryAfter?: number): Promise<void> {
    const left = this.#deadline - performance.now()
    if (left < firstPause) throw new Error(`the ${what} did not finish in time: ${reason}`)
    // Make the last attempt right before the deadline, however long the delay.
    await pause(Math.min(this.#backoff.next(retryAfter), Math.max(firstPause, left - firstPause)))
  }
}

interface Source {
  readonly path: string
  readonly headers: Record<string, string>
  readonly name: string
  /** Bytes; the server may not send more. */
  readonly size: number
  /** Meaning of a 404. */
  readonly absent: string
  /** Seconds until attempts stop; 0 = no limit. */
  readonly timeout: number
}

/** Requests the bytes from `from` on; the server may refuse temporarily. */
async function ask(
  send: Send,
  { path, headers, absent }: Source,
  from: number,
): Promise<AsyncIterable<Buffer> | Later> {
  const range: Record<string, string> = from > 0 ? { range: `bytes=${from}-` } : {}
  const answer = await send({ method: 'GET', path, headers: { ...headers, ...range } })
  const { status, body } = answer
  if (status === 206) return body as AsyncIterable<Buffer>
  // A server without ranges starts from the beginning.
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
 * Downloads a file in order. Resumes after an interruption, and waits for an unavailable server. Throws
 * `Refused` if no retry can help, Error on timeout.
 */
export async function* receive(send: Send, source: Source): AsyncGenerator<Buffer> {
  const { size, name, timeout } = source
  const patience = new Patience(timeout)
  let have = 0
  while (have < size) {
    let reason = 'the server is busy or unavailable'
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
