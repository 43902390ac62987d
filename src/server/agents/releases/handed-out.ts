import type { IncomingMessage } from 'node:http'
import { isLoopback } from '../../../core/loopback.ts'
import { normalUrl } from '../../../core/server-url.ts'
import type { Log } from '../../../disk/log.ts'
import type { Clients } from '../../access/client-address.ts'
import type { Tls } from '../../tls/tls.ts'
import { type Installer, readInstaller } from './installer.ts'
import { createJoining, type Joining } from './joining.ts'
import { openReleases, type Releases } from './releases.ts'

/** What a host gets that has no rsm yet, and what it is told. */
export interface HandedOut {
  readonly installer: Installer
  readonly releases: Releases
  readonly joining: Joining
  /** `--public-url`; null where it was not given. */
  readonly publicUrl: string | null
  /** From now on the server listens there. */
  listensOn(port: number): void
  /** Whether it comes to this request unchanged: over TLS, or on loopback (contract §10). */
  mayGoTo(request: IncomingMessage): boolean
}

interface Parts {
  /** The data directory. */
  readonly path: string
  readonly tls: Tls | null
  readonly clients: Clients
  readonly log: Log
}

/** Every address of the machine: nothing that another host could connect to. */
const isWildcard = (host: string): boolean => /^(0\.0\.0\.0|::)$/.test(host)

/** Errors: `usage` for a public URL that is none. */
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
