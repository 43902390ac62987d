import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { rawSecurityHeaders } from './security-headers.ts'

/** Answers with the envelope over a socket that has no response: before a request could be read, or for an upgrade. */
export function answerRaw(socket: Duplex, status: number, message: string, retryAfter?: number): void {
  const body = JSON.stringify({ code: status, message })
  const retry = retryAfter === undefined ? '' : `retry-after: ${retryAfter}\r\n`
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\ncontent-type: application/json; charset=utf-8\r\n${rawSecurityHeaders}${retry}connection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}
