import type { IncomingMessage } from 'node:http'

/**
 * Whether a request comes from no page at all, or from one of this server's own: browsers open WebSockets across origins
 * and say so in `Origin` (RFC 6455 §10.2). Behind a proxy that does not pass `Host` on, `X-Forwarded-Host` says what the
 * browser asked for; no page can set either. `scheme` is by which the browser asked, where that is known.
 */
export function isOwnOrigin(
  { headers }: Pick<IncomingMessage, 'headers'>,
  scheme: 'http' | 'https' | null = null,
): boolean {
  const { origin, host } = headers
  if (origin === undefined) return true
  const forwarded = headers['x-forwarded-host']
  try {
    const { protocol, host: from, origin: bare } = new URL(origin)
    // Browsers send nothing beside scheme, host and port; a path, a user or another scheme is no page of ours.
    if (origin !== bare || !(scheme === null ? ['http:', 'https:'] : [`${scheme}:`]).includes(protocol))
      return false
    const hostOf = (name: string) => new URL(`${protocol}//${name}`).host
    return [host, forwarded].some((name) => typeof name === 'string' && hostOf(name) === from)
  } catch {
    return false
  }
}
