import type { IncomingMessage } from 'node:http'
import {
  isLoopback,
  type Join,
  joinLine,
  joinString,
  normalUrl,
  readPin,
  showPin,
} from '../../../core/endpoint.ts'
import { sha256 } from '../../../disk/digest.ts'
import type { Log } from '../../../disk/log.ts'
import { ownText, type UnchangingFile, unchangingFile } from '../../../disk/own-files.ts'
import type { Clients } from '../../access/client-address.ts'
import type { Certificate } from '../../tls/certificate.ts'
import type { Tls } from '../../tls/tls.ts'
import { openReleases, type Releases } from './releases.ts'

/** Files and join instructions for hosts that have no rsm yet. */
export interface HandedOut {
  readonly installer: Installer
  readonly releases: Releases
  readonly joining: Joining
  /** `--public-url`; null where it was not given. */
  readonly publicUrl: string | null
  listensOn(port: number): void
  /** Whether the answer reaches this client unmodified: over TLS, or on loopback (contract §10). */
  mayGoTo(request: IncomingMessage): boolean
}

interface Parts {
  /** The data directory. */
  readonly path: string
  readonly tls: Tls | null
  readonly clients: Clients
  readonly log: Log
}

/** Errors: `usage` for an invalid public URL. */
export async function openHandedOut(
  { path, tls, clients, log }: Parts,
  { host, publicUrl }: { readonly host: string; readonly publicUrl?: string | undefined },
): Promise<HandedOut> {
  const isSafe = tls !== null || isLoopback(host)
  const normalPublicUrl = publicUrl === undefined ? undefined : normalUrl(publicUrl)
  const installer = readInstaller()
  const releases = await openReleases(path, log)
  let ownUrl: string | null = null
  const joining = createJoining({
    ownUrl: () => ownUrl,
    publicUrl: normalPublicUrl,
    certificate: () => tls?.certificate ?? null,
    isHandedOut: isSafe || clients.hasProxies,
    releases,
    scriptSha256: installer.sha256,
  })
  return {
    installer,
    releases,
    joining,
    publicUrl: normalPublicUrl ?? null,
    listensOn(port) {
      if (isWildcard(host)) return
      const named = host.includes(':') ? `[${host}]` : host
      ownUrl = `${tls === null ? 'http' : 'https'}://${named}:${port}`
    },
    mayGoTo: (request) => isSafe || clients.schemeOf(request) === 'https',
  }
}

/** Whether a listen address means all addresses, so that no host can connect to it. */
const isWildcard = (host: string): boolean => /^(0\.0\.0\.0|::)$/.test(host)

/** `/install.sh`: the same bytes for every client. */
interface Installer extends UnchangingFile {
  readonly sha256: string
}

function readInstaller(): Installer {
  const text = ownText('packaging/install.sh')
  return { ...unchangingFile('text/x-shellscript; charset=utf-8', Buffer.from(text)), sha256: sha256(text) }
}

export interface Joining {
  /** URL for hosts: `--public-url`, else the given one, else the listen address; null if that is a wildcard. */
  urlFor(given: string | undefined): string | null
  /** Both null while no URL is known. Errors: `usage` for an invalid URL or fingerprint. */
  describe(
    token: string,
    from: { readonly url?: string | undefined; readonly fingerprint?: string | undefined },
  ): Promise<{ join: string | null; line: string | null }>
}

interface JoiningParts {
  readonly publicUrl?: string | undefined
  /** Listen address as a URL; null until the server listens, and if it listens on all addresses. */
  readonly ownUrl: () => string | null
  /** Current certificate; null without TLS. */
  readonly certificate: () => Certificate | null
  /**
   * Whether `/install.sh` and `/dl` answer. Without TLS they do so only on loopback or behind a trusted proxy, because files
   * could be modified on the way.
   */
  readonly isHandedOut: boolean
  readonly releases: Pick<Releases, 'builds'>
  readonly scriptSha256: string
}

function createJoining(parts: JoiningParts): Joining {
  const { publicUrl, ownUrl, certificate, isHandedOut, releases, scriptSha256 } = parts
  return {
    urlFor: (given) => publicUrl ?? given ?? ownUrl(),
    async describe(token, from) {
      const url = publicUrl ?? from.url
      if (url === undefined) return { join: null, line: null }
      const fingerprint = url.startsWith('https:')
        ? fingerprintOf(certificate(), from.fingerprint)
        : undefined
      const join: Join = { url, token, ...(fingerprint !== undefined && { fingerprint }) }
      const handedOut = isHandedOut ? { builds: await releases.builds(), scriptSha256 } : null
      return { join: joinString(join), line: joinLine(join, handedOut) }
    },
  }
}

/** Pin in the join string: only if no CA signed the certificate, or the caller pins it. */
function fingerprintOf(own: Certificate | null, pinned: string | undefined): string | undefined {
  if (pinned === undefined) return own?.selfSigned ? own.fingerprint : undefined
  const pin = showPin(readPin(pinned))
  // Prefer the key's pin for our own certificate: curl can check it, and it survives renewals.
  return own !== null && pin === own.certificatePin ? own.fingerprint : pin
}
