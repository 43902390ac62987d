import type { FastifyRequest } from 'fastify'

/** The header `Idempotency-Key` (contract §4), or undefined. Node joins repeated ones, which the service then refuses. */
export function idempotencyKeyOf(request: FastifyRequest): string | undefined {
  const key = request.headers['idempotency-key']
  return Array.isArray(key) ? key.join(' ') : key
}
