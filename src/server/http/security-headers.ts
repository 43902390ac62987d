import type { OutgoingHttpHeaders } from 'node:http'

const nosniff = { 'x-content-type-options': 'nosniff' } as const

/** What an answer carries against being sniffed, framed, embedded or followed (contract §1, S08). */
const strict = {
  ...nosniff,
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  // For data. A route that serves pages sets its own over it.
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
} as const

/** Half a year. Without includeSubDomains: what else the domain serves is not ours to decide. */
const transport = { 'strict-transport-security': 'max-age=15768000' } as const

/** For answers that Fastify does not send: no hook sets their headers. */
export const rawSecurityHeaders: string = Object.entries(strict)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('')

/**
 * The headers of an answer by its request's path. Both sets are made once. Agents never show an answer, and a fleet's
 * heartbeats are most of what a server answers: theirs carry nosniff alone, which the contract asks of every response.
 * `hsts` tells browsers to insist on TLS, for every port of this host's name: only the operator knows whether that is true.
 */
export function securityHeaders(hsts: boolean): (url: string) => OutgoingHttpHeaders {
  const full = hsts ? { ...strict, ...transport } : strict
  return (url) => (url.startsWith('/api/agent/') ? nosniff : full)
}
