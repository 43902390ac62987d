import { RsmError } from './errors.ts'
import type { Build } from './release.ts'

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

/** Everything that a host needs to join a server (contract §10). */
export interface Join {
  /** In the form of `normalUrl`. */
  readonly url: string
  readonly token: string
  /** In the form of `showPin`; left out if a certificate authority vouches for the server. */
  readonly fingerprint?: string
}

/** Downloads that the server offers; null if it has no TLS and is not on loopback. */
interface HandedOut {
  readonly builds: readonly Build[]
  readonly scriptSha256: string
}

const prefix = 'rsm-join:'
const version = 1
const enrollmentToken = /^rsm_enr_[\w-]{43}$/
const askAgain = 'make a new one: rsm hosts join'

/** `packaging/install.sh` relies on this order of fields, because it has no JSON parser. */
export function joinString({ url, token, fingerprint }: Join): string {
  const text = JSON.stringify({ v: version, url, token, ...(fingerprint !== undefined && { fingerprint }) })
  return prefix + btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** Errors: `usage`, which tells whether the string was cut, altered, or has another version. */
export function readJoin(text: string): Join {
  const trimmed = text.trim()
  if (trimmed === '')
    throw wrong('there is no join string', 'it begins with rsm-join:; rsm hosts join prints one')
  if (!trimmed.startsWith(prefix))
    throw wrong('not a join string: one begins with rsm-join:', 'rsm hosts join prints one')
  const { v, url, token, fingerprint, ...more } = decoded(trimmed.slice(prefix.length))
  if (typeof v === 'number' && v !== version)
    throw wrong(
      `the join string has version ${v}; this rsm supports only ${version}`,
      "install the server's release of rsm with its /install.sh",
    )
  const [unknown] = Object.keys(more)
  if (v !== version || unknown !== undefined) throw altered(`its ${unknown ?? 'version'} is unknown`)
  if (typeof token !== 'string' || !enrollmentToken.test(token)) throw altered('invalid token')
  if (typeof url !== 'string') throw altered('it has no url')
  const join = { url: field('url', () => normalUrl(url)), token }
  if (fingerprint === undefined) return join
  if (typeof fingerprint !== 'string') throw altered('invalid fingerprint')
  return { ...join, fingerprint: field('fingerprint', () => showPin(readPin(fingerprint))) }
}

function decoded(text: string): Record<string, unknown> {
  const strange = /[^\w-]/.exec(text)?.[0]
  if (strange !== undefined) throw altered(`unexpected ${JSON.stringify(strange)}`)
  let json: string
  try {
    json = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  } catch {
    throw cut()
  }
  try {
    const value: unknown = JSON.parse(json)
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {
    if (json.startsWith('{"v":') && !json.endsWith('}')) throw cut()
  }
  throw altered('not a JSON object')
}

function field<T>(name: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw altered(`invalid ${name} (${(error as Error).message})`)
  }
}

const wrong = (what: string, hint: string) => new RsmError('usage', what, { hint })
const cut = () => wrong('the join string was cut: its end is missing', `copy all of it, or ${askAgain}`)
const altered = (why: string) => wrong(`the join string was altered: ${why}`, `copy it again, or ${askAgain}`)

/** Command to paste on the host; null if nothing downloaded from this server could be trusted. */
export function joinLine(join: Join, handedOut: HandedOut | null): string | null {
  const { url, fingerprint } = join
  if (handedOut === null || isInTheClear(url)) return null
  // curl and wget cannot pin a whole certificate.
  const canPin = fingerprint === undefined || readPin(fingerprint).of === 'key'
  if (handedOut.builds.length === 0 || !canPin) return runLine(join)
  return installLine(join, handedOut.builds, handedOut.scriptSha256)
}

/**
 * Command that installs rsm and its agent on a host that has neither (contract §10). It pins the server's key, runs
 * the script only if its sha256 matches, and passes the join string on stdin. The leading blank keeps it out of the
 * shell's history.
 */
function installLine(join: Join, builds: readonly Build[], scriptSha256: string): string {
  const { url, fingerprint } = join
  const script = quoted(`${url}/install.sh`)
  const pin = fingerprint === undefined ? '' : quoted(fingerprint)
  const curl = `curl -fsS${pin && `k --pinnedpubkey ${pin}`} ${script}`
  const wget = `wget -nv -O-${pin && ` --no-check-certificate --pinnedpubkey=${pin}`} ${script}`
  const sums = builds.map(({ arch, sha256 }) => `${arch}=${sha256}`).join(' ')
  return (
    ` s=$(if command -v curl >/dev/null; then ${curl}; else ${wget}; fi) && ` +
    `{ [ "$(printf '%s\\n' "$s" | sha256sum)" = '${scriptSha256}  -' ] || ! echo 'rsm: install.sh does not match the checksum in this line: nothing was run' >&2; } && ` +
    `echo ${joinString(join)} | sh -c "$s" install.sh ${sums} rsm agent install -`
  )
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** Runs the agent on a host that has rsm. The leading blank keeps the token out of the shell's history. */
export function runLine({ url, token, fingerprint }: Join): string {
  const word = /^[\w./:@%+-]+$/.test(url) ? url : quoted(url)
  const pin = fingerprint === undefined ? '' : ` --tls-fingerprint ${fingerprint}`
  return ` RSM_AGENT_ENROLL_TOKEN=${token} rsm agent run --url ${word}${pin}`
}
