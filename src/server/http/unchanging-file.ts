import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Bytes that stay the same as long as the process lives. */
export interface UnchangingFile {
  mediaType: string
  bytes: Buffer
  /** RFC 9110 §8.8.3: quotes and all. */
  etag: string
}

export function unchangingFile(mediaType: string, bytes: Buffer): UnchangingFile {
  return { mediaType, bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` }
}

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
