import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { httpStatus, RsmError } from '../../core/errors.ts'
import { rawSecurityHeaders } from '../http/security-headers.ts'

/** Answers with the envelope, over a socket that is no WebSocket yet. */
export function refuseUpgrade(socket: Duplex, error: unknown): void {
  const status = httpStatus(error)
  const message = error instanceof RsmError ? error.message : 'Internal server error'
  const body = JSON.stringify({ code: status, message })
  const retry = error instanceof RsmError && error.retryAfter ? `retry-after: ${error.retryAfter}\r\n` : ''
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\ncontent-type: application/json; charset=utf-8\r\n${rawSecurityHeaders}${retry}connection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}
