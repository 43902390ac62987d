import type { Duplex } from 'node:stream'
import { httpStatus, RsmError } from '../../core/errors.ts'
import { answerRaw } from '../http/raw-answer.ts'

/** Answers with the envelope, over a socket that is no WebSocket yet. */
export function refuseUpgrade(socket: Duplex, error: unknown): void {
  const known = error instanceof RsmError
  answerRaw(
    socket,
    httpStatus(error),
    known ? error.message : 'Internal server error',
    known ? error.retryAfter : undefined,
  )
}
