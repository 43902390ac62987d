import type { FastifyReply, FastifyRequest } from 'fastify'
import type { UnchangingFile } from '../../disk/unchanging-file.ts'

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
