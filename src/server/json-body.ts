import type { FastifyBodyParser, FastifyRequest } from 'fastify'
import { RsmError } from '../core/errors.ts'

/** Deeper is an attack on whoever walks the value recursively (reliability, facts). */
const maxDepth = 32

/** Whether JSON text nests deeper than `bound`, told without parsing it. */
function nestsDeeper(text: string, bound: number): boolean {
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
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(headers['content-type'] ?? '')?.[1]
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) return `The body has to be UTF-8, not ${charset}`
  const coding = headers['content-encoding']
  if (coding !== undefined && coding !== 'identity') return 'The body has to come without Content-Encoding'
  return null
}

/** JSON bodies: an empty one is none, a deep or malformed one a 400 that says where. */
export function jsonParser(parse: FastifyBodyParser<string>): FastifyBodyParser<string> {
  return (request, body, done) => {
    const label = mislabelled(request)
    if (label !== null) return done(new RsmError('media_type', label))
    if (body === '') return done(null, undefined)
    if (nestsDeeper(body, maxDepth))
      return done(new RsmError('invalid', `The JSON nests deeper than ${maxDepth} levels`))
    const settle = (error: Error | null, value?: unknown) => {
      // The parser's own sentence helps only where it refuses `__proto__` and `constructor`.
      const detail = error?.message.includes('forbidden') ? `: ${error.message}` : ''
      if (error) done(new RsmError('invalid', `The body is not valid JSON${detail}`))
      else done(null, value)
    }
    void parse(request, body, settle)
  }
}
