import type { IncomingMessage } from 'node:http'
import { Transform } from 'node:stream'
import { RsmError } from '../../core/errors.ts'

/** Bodies up to this size are taken as they come: heartbeats, and what comes without a token. */
export const smallBody = 16 * 1024

/** Bytes that larger bodies of all callers may have together while they come (reliability S10) … */
const roomOfAll = 128 * 1024 * 1024
/** … and those of one, so that a single one can not keep the others' out. */
const roomOfOne = 32 * 1024 * 1024
/** Seconds. */
const retryAfter = 5

export interface BodyRoom {
  /**
   * Takes room for a body until it has come or its sender has gone; `limit` is the most that it may have. Answers the
   * stream to read it from. Throws `unavailable` where there is no room; where the length was not told, the stream does.
   */
  enter<S extends IncomingMessage>(payload: S, caller: () => string, limit: number): S | Transform
}

export function createBodyRoom(): BodyRoom {
  const taken = new Map<string, number>()
  let sum = 0

  /** Answers what gives the room back; may be called more than once. */
  function take(caller: string, bytes: number): () => void {
    const before = taken.get(caller) ?? 0
    if (sum + bytes > roomOfAll || before + bytes > roomOfOne)
      throw new RsmError('unavailable', 'The server is taking in too many large bodies just now', {
        retryAfter,
      })
    sum += bytes
    taken.set(caller, before + bytes)
    let reserved = bytes
    return () => {
      const left = (taken.get(caller) ?? 0) - reserved
      if (left > 0) taken.set(caller, left)
      else taken.delete(caller)
      sum -= reserved
      reserved = 0
    }
  }

  function reserve(payload: IncomingMessage, caller: () => string, bytes: number): void {
    const free = take(caller(), bytes)
    payload.once('end', free)
    payload.once('close', free)
  }

  /** Of a body that does not say how long it is, the first small part goes through; with more it takes all it may need. */
  function measured(payload: IncomingMessage, caller: () => string, limit: number): Transform {
    let seen = 0
    const through = new Transform({
      transform(piece: Buffer, _encoding, done) {
        const isLarge = seen > smallBody
        seen += piece.length
        try {
          if (!isLarge && seen > smallBody) reserve(payload, caller, limit)
        } catch (error) {
          return done(error as Error)
        }
        done(null, piece)
      },
    })
    payload.once('error', (error) => through.destroy(error))
    return payload.pipe(through)
  }

  return {
    enter(payload, caller, limit) {
      const { 'content-length': declared, 'transfer-encoding': coding } = payload.headers
      if (declared === undefined) return coding === undefined ? payload : measured(payload, caller, limit)
      const bytes = Number(declared)
      // Longer than is allowed is refused unread.
      if (bytes > smallBody && bytes <= limit) reserve(payload, caller, bytes)
      return payload
    },
  }
}
