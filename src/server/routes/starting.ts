import type { FastifyRequest } from 'fastify'
import { userOf } from '../http/auth.ts'
import type { Starter } from '../services/tasks.ts'

/** For the API's own document. */
export const idempotencyHeader = {
  'Idempotency-Key':
    'For 24 h the same key of the same user answers the first task and starts nothing; with another body it is 409.',
} as const

/** The header `Idempotency-Key` (contract §4), or undefined. Node joins repeated ones, which the service then refuses. */
export function idempotencyKeyOf(request: FastifyRequest): string | undefined {
  const key = request.headers['idempotency-key']
  return Array.isArray(key) ? key.join(' ') : key
}

/** Whoever starts a task: its entry in the audit log is written before its end is waited for. */
export function starterOf(request: FastifyRequest): Starter {
  return { ...userOf(request), started: request.started }
}
