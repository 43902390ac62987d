import type { IncomingMessage } from 'node:http'
import { Transform } from 'node:stream'
import { RsmError } from '../../core/errors.ts'

/** Bytes; bodies up to this size, such as heartbeats, reserve no room. Limit of bodies without a token. */
export const smallBody = 16 * 1024

/** Bytes in flight of larger bodies of all callers together (reliability S10) … */
const roomOfAll = 128 * 1024 * 1024
/** … and of one caller, so that a single one cannot block the others. */
const roomOfOne = 32 * 1024 * 1024
/** Seconds. */
const retryAfter = 5

export interface BodyRoom {
  /**
   * Reserves room for a body until it has arrived or its sender left; `limit`: its largest allowed size. Returns the
   * stream to read. Throws `unavailable` if there is no room; without Content-Length, the stream fails instead.
   */
  enter<S extends IncomingMessage>(payload: S, caller: () => string, limit: number): S | Transform
}

export function createBodyRoom(): BodyRoom {
  const taken = new Map<string, number>()
  let sum = 0

  /** Returns a function that frees the room; it may be called repeatedly. */
  function take(caller: string, bytes: number): () => void {
    const before = taken.get(caller) ?? 0
    if (sum + bytes > roomOfAll || before + bytes > roomOfOne)
      throw new RsmError('unavailable', 'The server is receiving too many large bodies; try again later', {
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

  /** Handles a body of unknown length: passes a small first part, then reserves room for `limit`. */
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
      // A body over the limit is refused unread.
      if (bytes > smallBody && bytes <= limit) reserve(payload, caller, bytes)
      return payload
    },
  }
}
