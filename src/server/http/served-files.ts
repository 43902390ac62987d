import type { FastifyReply, FastifyRequest } from 'fastify'
import type { UnchangingFile } from '../../disk/digest.ts'

/** Sends it, or 304 to who has it already. It may be kept, and has to be asked for again: an upgrade changes it. */
export function sendUnchanging(
  request: FastifyRequest,
  reply: FastifyReply,
  { mediaType, bytes, etag }: UnchangingFile,
): FastifyReply {
  reply.headers({ 'cache-control': 'no-cache', etag })
  const known = new Set((request.headers['if-none-match'] ?? '').split(',').map((one) => one.trim()))
  if (known.has(etag) || known.has(`W/${etag}`) || known.has('*')) return reply.code(304).send()
  return reply.type(mediaType).send(bytes)
}

/**
 * The files of these names and media types, each read when it is first asked for, and kept; undefined for any other name. A
 * read that failed is tried again.
 */
export function keptFiles<F>(
  mediaTypes: Readonly<Record<string, string>>,
  read: (name: string, mediaType: string) => Promise<F>,
): (name: string) => Promise<F | undefined> {
  const kept = new Map<string, Promise<F>>()
  return async (name) => {
    const mediaType = Object.hasOwn(mediaTypes, name) ? mediaTypes[name] : undefined
    if (mediaType === undefined) return undefined
    const known = kept.get(name)
    if (known) return known
    const reading = read(name, mediaType)
    kept.set(name, reading)
    reading.catch(() => kept.delete(name))
    return reading
  }
}

/** The bytes that a Range asks for (RFC 9110 §14.2), first and last; null for all of them, as for several ranges at once. */
export function rangeOf(
  header: string | undefined,
  size: number,
): { first: number; last: number } | 'unsatisfiable' | null {
  const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(header ?? '') ?? []
  if (from === '' && to === '') return null
  const first = from === '' ? Math.max(0, size - Number(to)) : Number(from)
  const last = from === '' || to === '' ? size - 1 : Math.min(Number(to), size - 1)
  if (from !== '' && to !== '' && Number(to) < Number(from)) return null
  return first > last ? 'unsatisfiable' : { first, last }
}
