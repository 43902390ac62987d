import { isInTheClear, normalUrl, readPin, showPin } from '../endpoint.ts'
import { RsmError } from '../errors.ts'
import type { Build } from '../release.ts'

/** What a host needs to know to join a server (contract §10). */
export interface Join {
  /** As `normalUrl` has it. */
  readonly url: string
  /** An enrollment token. */
  readonly token: string
  /** As `showPin` has it; left out where an authority vouches for the server. */
  readonly fingerprint?: string
}

/** What the server hands out: nothing where it speaks no TLS beyond loopback. */
interface HandedOut {
  readonly builds: readonly Build[]
  readonly scriptSha256: string
}

const prefix = 'rsm-join:'
const version = 1
const enrollmentToken = /^rsm_enr_[\w-]{43}$/
const askAgain = 'make a new one: rsm hosts join'

/** The fields stand in this order: `packaging/install.sh` reads them without a JSON parser. */
export function joinString({ url, token, fingerprint }: Join): string {
  const text = JSON.stringify({ v: version, url, token, ...(fingerprint !== undefined && { fingerprint }) })
  return prefix + btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** What `joinString` made. Errors: `usage`, which says whether it was cut, altered, or is of another version. */
export function readJoin(text: string): Join {
  const trimmed = text.trim()
  if (trimmed === '')
    throw wrong('there is no join string', 'it begins with rsm-join:; rsm hosts join prints one')
  if (!trimmed.startsWith(prefix))
    throw wrong('not a join string: one begins with rsm-join:', 'rsm hosts join prints one')
  const { v, url, token, fingerprint, ...more } = decoded(trimmed.slice(prefix.length))
  if (typeof v === 'number' && v !== version)
    throw wrong(
      `the join string is of version ${v}, and this rsm knows only ${version}`,
      'install the rsm that the server has: its /install.sh does',
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
  if (strange !== undefined) throw altered(`${JSON.stringify(strange)} can't be in it`)
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
  throw altered('it holds no JSON object')
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

/** What to paste on the host; null where nothing that came from this server could be trusted. */
export function joinLine(join: Join, handedOut: HandedOut | null): string | null {
  const { url, fingerprint } = join
  if (handedOut === null || isInTheClear(url)) return null
  // curl and wget know no pin of a whole certificate.
  const canPin = fingerprint === undefined || readPin(fingerprint).of === 'key'
  if (handedOut.builds.length === 0 || !canPin) return runLine(join)
  return installLine(join, handedOut.builds, handedOut.scriptSha256)
}

/**
 * What installs rsm and its agent on a host that has neither (contract §10): it pins the server's key, runs the script only
 * if that is the one with this sha256, and hands the join string over on stdin. The blank keeps it out of the shell's history.
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
    `{ [ "$(printf '%s\\n' "$s" | sha256sum)" = '${scriptSha256}  -' ] || ! echo 'rsm: install.sh is another than the line names: nothing was run' >&2; } && ` +
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
