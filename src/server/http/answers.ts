import { type OutgoingHttpHeaders, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { httpStatus, RsmError } from '../../core/errors.ts'

export const notBytes = 'The body must be application/octet-stream'

export class Envelope {
  readonly code: number
  readonly message: string
  readonly errors: readonly { field: string; message: string }[] | undefined
  readonly data: object | undefined
  constructor(code: number, message: string, { fields, data }: Pick<RsmError, 'fields' | 'data'>) {
    this.code = code
    this.message = message
    this.errors = fields.length > 0 ? fields : undefined
    this.data = data
  }
}

const frameworkCodes: Record<string, [RsmError['code'], string]> = {
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['invalid', 'The body length does not match Content-Length'],
}

/** Converts any thrown value; unknown ones become `internal`. */
export function asRsmError(
  error: FastifyError | RsmError,
  { bodyLimit, config }: FastifyRequest['routeOptions'],
): RsmError {
  if (error instanceof RsmError) return error
  if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return new RsmError(
      'media_type',
      config.operation?.bytes ? notBytes : 'The body must be application/json',
    )
  if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return new RsmError('too_large', `The body is larger than ${bodyLimit} bytes`)
  const known = frameworkCodes[error.code]
  if (known) return new RsmError(known[0], known[1])
  if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500)
    return new RsmError('invalid', error.message)
  return new RsmError('internal', 'Internal server error', { cause: error })
}

export function sendError(reply: FastifyReply, error: RsmError): FastifyReply {
  const status = httpStatus(error)
  if (error.retryAfter !== undefined) reply.header('retry-after', error.retryAfter)
  const message = error.code === 'internal' ? 'Internal server error' : error.message
  return reply.code(status).send(new Envelope(status, message, error))
}

/** Milliseconds for a peer to close its side; without a limit, it could hold the half-open socket forever. */
const parting = 1_000

/** Sends the envelope over a socket without a response: before a request was parsed, or for an upgrade. */
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

export function refuseUpgrade(socket: Duplex, error: unknown): void {
  const known = error instanceof RsmError
  answerRaw(
    socket,
    httpStatus(error),
    known ? error.message : 'Internal server error',
    known ? error.retryAfter : undefined,
  )
}

const nosniff = { 'x-content-type-options': 'nosniff' } as const

/** Headers against sniffing, framing, embedding and referrers (contract §1, S08). */
const strict = {
  ...nosniff,
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  // For data; routes that serve pages override it.
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
} as const

/** Half a year. No includeSubDomains, because other hosts of the domain are not ours. */
const transport = { 'strict-transport-security': 'max-age=15768000' } as const

/** For raw answers, which bypass Fastify's hooks. */
const rawSecurityHeaders: string = Object.entries(strict)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('')

/**
 * Returns the headers for a request path. Agents get only nosniff, which the contract requires of every response,
 * because they never display answers, and heartbeats are most of the traffic. `hsts` makes browsers require TLS for
 * every port of the hostname, so only the operator can decide on it.
 */
export function securityHeaders(hsts: boolean): (url: string) => OutgoingHttpHeaders {
  const full = hsts ? { ...strict, ...transport } : strict
  return (url) => (url.startsWith('/api/agent/') ? nosniff : full)
}
