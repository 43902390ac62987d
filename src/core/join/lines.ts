import { isInTheClear } from '../loopback.ts'
import { readPin } from '../pins.ts'
import type { Build } from './builds.ts'
import { type Join, joinString } from './join-string.ts'

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** Runs the agent on a host that has rsm. The leading blank keeps the token out of the shell's history. */
export function runLine({ url, token, fingerprint }: Join): string {
  const word = /^[\w./:@%+-]+$/.test(url) ? url : quoted(url)
  const pin = fingerprint === undefined ? '' : ` --tls-fingerprint ${fingerprint}`
  return ` RSM_AGENT_ENROLL_TOKEN=${token} rsm agent run --url ${word}${pin}`
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

/** What the server hands out: nothing where it speaks no TLS beyond loopback. */
export interface HandedOut {
  readonly builds: readonly Build[]
  readonly scriptSha256: string
}

/** What to paste on the host; null where nothing that came from this server could be trusted. */
export function joinLine(join: Join, handedOut: HandedOut | null): string | null {
  const { url, fingerprint } = join
  if (handedOut === null || isInTheClear(url)) return null
  // curl and wget know no pin of a whole certificate.
  const canPin = fingerprint === undefined || readPin(fingerprint).of === 'key'
  if (handedOut.builds.length === 0 || !canPin) return runLine(join)
  return installLine(join, handedOut.builds, handedOut.scriptSha256)
}
