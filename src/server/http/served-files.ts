import type { FastifyReply, FastifyRequest } from 'fastify'
import type { UnchangingFile } from '../../disk/own-files.ts'

/** Sends a file, or 304 if the client has it. Clients must revalidate, because an upgrade changes it. */
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

/** Loads files by name on first use and caches them; undefined for unknown names. A failed read is retried. */
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

/** First and last byte of a Range (RFC 9110 §14.2); null for the whole file, also for several ranges. */
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
