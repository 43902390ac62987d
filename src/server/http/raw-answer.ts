import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { rawSecurityHeaders } from './security-headers.ts'

/**
 * Milliseconds that a peer has to close its side after the answer. Sockets of HTTP may stay half open: without a bound, a peer that
 * does nothing would hold one for ever, and a server that stops would wait for it.
 */
const parting = 1_000

/** Answers with the envelope over a socket that has no response: before a request could be read, or for an upgrade. */
export function answerRaw(socket: Duplex, status: number, message: string, retryAfter?: number): void {
  const body = JSON.stringify({ code: status, message })
  const retry = retryAfter === undefined ? '' : `retry-after: ${retryAfter}\r\n`
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\ncontent-type: application/json; charset=utf-8\r\n${rawSecurityHeaders}${retry}connection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  const cut = setTimeout(() => socket.destroy(), parting)
  cut.unref()
  socket.once('close', () => clearTimeout(cut))
}
