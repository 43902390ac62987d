import type { OutgoingHttpHeaders } from 'node:http'

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
export const rawSecurityHeaders: string = Object.entries(strict)
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
