import { RsmError } from './errors.ts'

const keyPattern = /^sha256\/\/(?<hash>[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)$/
const certificatePattern = /^(?:sha-?256:)?(?<hash>[0-9a-f]{64})$/i

/** Value of `--tls-fingerprint` (contract §9): the SHA-256 of a server's key or of its whole certificate. */
export interface Pin {
  readonly of: 'key' | 'certificate'
  /** Base64 for a key, 64 hex digits for a certificate. */
  readonly sha256: string
}

/** The URL as it is stored and compared: lower-case host, no trailing slash. Errors: `usage`. */
export function normalUrl(text: string): string {
  // Does not repeat a URL with a password, because errors end up in logs.
  const shown = text.includes('@') ? '...' : text
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw new RsmError('usage', `not a URL: ${shown}`, { hint: urlHint(text) })
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new RsmError('usage', `a server's URL begins with http:// or https://: ${shown}`, {
      hint: urlHint(text),
    })
  if (url.username !== '' || url.password !== '')
    throw new RsmError('usage', "a server's URL cannot contain a password", { hint: 'log in: rsm login URL' })
  return (url.origin + url.pathname).replace(/(?<!\/)\/+$/, '')
}

/** A bare `HOST` or `HOST:PORT` is the likeliest slip. Its scheme is not guessed, because a password follows. */
function urlHint(text: string): string {
  return /^[\w.-]+(:\d+)?$/.test(text)
    ? `write it as https://${text}, or http://${text} without TLS`
    : 'write it as http://HOST:18080 or https://HOST'
}

/** Whether a host is always this machine, whatever a name service says: plain text never leaves it. */
export function isLoopback(host: string): boolean {
  return /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[?::1\]?)$/i.test(host)
}

/** Whether traffic to this URL can be read in transit. */
export function isInTheClear(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'http:' && !isLoopback(hostname)
}

/** Ignores colons, case and a leading `sha256:` of a certificate's fingerprint. Errors: `usage`. */
export function readPin(text: string): Pin {
  const key = keyPattern.exec(text)?.groups?.['hash']
  if (key !== undefined) return { of: 'key', sha256: key }
  const [, algorithm = '', rest = ''] = /^(sha-?256:)?(.*)$/is.exec(text) ?? []
  const hex = certificatePattern.exec(algorithm + rest.replaceAll(':', ''))?.groups?.['hash']
  if (hex !== undefined) return { of: 'certificate', sha256: hex.toLowerCase() }
  throw new RsmError('usage', `not a SHA-256 fingerprint: ${text}`, {
    hint: 'rsm server start prints it as `fingerprint sha256//…`; for a certificate, use sha256: and 64 hex digits',
  })
}

/** In the format of `--tls-fingerprint`. */
export const showPin = ({ of, sha256 }: Pin): string => (of === 'key' ? 'sha256//' : 'sha256:') + sha256
