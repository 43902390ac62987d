import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { Transform } from 'node:stream'
import type { FastifyBodyParser, FastifyRequest } from 'fastify'
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

/** Deeper nesting is an attack on recursive code (reliability "Facts that bite"). */
const maxDepth = 32

/** Longer texts may hold more than is worth validating; shorter ones, such as heartbeats, are not counted. */
const smallText = 64 * 1024
/** Far more keys than any call needs … */
const maxKeys = 20_000
/** … and the longest list, a cluster's hosts, has up to 100,000 elements. */
const maxElements = 120_000

/** Parses JSON bodies; an empty one becomes `{}`. A malformed, too deep or too large one is a 400 with the reason. */
export function jsonParser(parseSafely: FastifyBodyParser<string>): FastifyBodyParser<Buffer> {
  return (request, bytes, done) => {
    const label = mislabelled(request)
    if (label !== null) return done(new RsmError('media_type', label))
    // Replacement characters would silently alter a script.
    if (!isUtf8(bytes)) return done(new RsmError('invalid', 'The body is not valid UTF-8'))
    const body = bytes.toString('utf8')
    if (body === '') return done(null, {})
    if (nestsDeeper(body, maxDepth))
      return done(new RsmError('invalid', `The JSON nests deeper than ${maxDepth} levels`))
    const accept = (value: unknown) => {
      if (body.length <= smallText || !exceedsBounds(value)) return done(null, value)
      const bounds = `${maxKeys} keys or ${maxElements} list elements`
      done(new RsmError('invalid', `The JSON has more than ${bounds}`))
    }
    const refuse = (detail = '') => done(new RsmError('invalid', `The body is not valid JSON${detail}`))
    if (isSuspect(body)) {
      const settle = (error: Error | null, value?: unknown) => {
        if (!error) return accept(value)
        // The parser's message helps only if it refuses `__proto__` or `constructor`, which JSON allows.
        refuse(isJson(body) ? `: ${error.message}` : '')
      }
      return void parseSafely(request, body, settle)
    }
    let value: unknown
    try {
      value = JSON.parse(body)
    } catch {
      return refuse()
    }
    accept(value)
  }
}

function exceedsBounds(root: unknown): boolean {
  let keys = 0
  let elements = 0
  function isTooMuch(value: unknown): boolean {
    if (typeof value !== 'object' || value === null) return false
    if (Array.isArray(value)) {
      elements += value.length
      return elements > maxElements || value.some(isTooMuch)
    }
    const parts = Object.values(value)
    keys += 1 + parts.length
    return keys > maxKeys || parts.some(isTooMuch)
  }
  return isTooMuch(root)
}

/** Whether text has more opening brackets than `bound`; most bodies have few and need no further check. */
function opensMore(text: string, bound: number): boolean {
  let left = bound
  for (const bracket of ['{', '['])
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1))
      if (--left < 0) return true
  return false
}

/** Whether JSON text nests deeper than `bound`, without parsing it. */
function nestsDeeper(text: string, bound: number): boolean {
  if (!opensMore(text, bound)) return false
  let depth = 0
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (inString) {
      if (code === 92) at++
      else if (code === 34) inString = false
    } else if (code === 34) inString = true
    else if (code === 123 || code === 91) {
      if (++depth > bound) return true
    } else if (code === 125 || code === 93) depth--
  }
  return false
}

/** Fault of charset or encoding: JSON is UTF-8 (RFC 8259 §8.1), and bodies are too small for compression. */
function mislabelled({ headers }: FastifyRequest): string | null {
  // Fast path: the usual header.
  if (headers['content-type'] === 'application/json' && headers['content-encoding'] === undefined) return null
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(headers['content-type'] ?? '')?.[1]
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) return `The body must be UTF-8, not ${charset}`
  const coding = headers['content-encoding']
  if (coding !== undefined && coding !== 'identity') return 'The body must not have a Content-Encoding'
  return null
}

/** Whether text may contain a key `__proto__` or `constructor`, escaped or not, or starts with a byte order mark. */
function isSuspect(text: string): boolean {
  return (
    text.includes('__proto__') ||
    text.includes('constructor') ||
    text.includes('\\u') ||
    text.charCodeAt(0) === 0xfeff
  )
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text.replace(/^\uFEFF/, ''))
    return true
  } catch {
    return false
  }
}
