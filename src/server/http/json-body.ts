import type { FastifyBodyParser, FastifyRequest } from 'fastify'
import { RsmError } from '../../core/errors.ts'

/** Deeper is an attack on whoever walks the value recursively (reliability, facts). */
const maxDepth = 32

/** Whether text has more opening brackets than `bound`; most bodies have few, and need no closer look. */
function opensMore(text: string, bound: number): boolean {
  let left = bound
  for (const bracket of ['{', '['])
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1))
      if (--left < 0) return true
  return false
}

/** Whether JSON text nests deeper than `bound`, told without parsing it. */
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

/** JSON is UTF-8 (RFC 8259 §8.1), and no body of ours is large enough to be worth its compression. */
function mislabelled({ headers }: FastifyRequest): string | null {
  // The label that nearly everybody sends.
  if (headers['content-type'] === 'application/json' && headers['content-encoding'] === undefined) return null
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(headers['content-type'] ?? '')?.[1]
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) return `The body has to be UTF-8, not ${charset}`
  const coding = headers['content-encoding']
  if (coding !== undefined && coding !== 'identity') return 'The body has to come without Content-Encoding'
  return null
}

/** Whether text may hold a key `__proto__` or `constructor`, escaped or not, or begin with a byte order mark. */
function isSuspect(text: string): boolean {
  return (
    text.includes('__proto__') ||
    text.includes('constructor') ||
    text.includes('\\u') ||
    text.charCodeAt(0) === 0xfeff
  )
}

/** JSON bodies: an empty one is none, a deep or malformed one a 400 that says where. */
export function jsonParser(parseSafely: FastifyBodyParser<string>): FastifyBodyParser<string> {
  return (request, body, done) => {
    const label = mislabelled(request)
    if (label !== null) return done(new RsmError('media_type', label))
    if (body === '') return done(null, {})
    if (nestsDeeper(body, maxDepth))
      return done(new RsmError('invalid', `The JSON nests deeper than ${maxDepth} levels`))
    const refuse = (detail = '') => done(new RsmError('invalid', `The body is not valid JSON${detail}`))
    if (isSuspect(body)) {
      const settle = (error: Error | null, value?: unknown) => {
        if (!error) return done(null, value)
        // The parser's own sentence helps only where it refuses `__proto__` and `constructor`.
        refuse(error.message.includes('forbidden') ? `: ${error.message}` : '')
      }
      return void parseSafely(request, body, settle)
    }
    let value: unknown
    try {
      value = JSON.parse(body)
    } catch {
      return refuse()
    }
    done(null, value)
  }
}
