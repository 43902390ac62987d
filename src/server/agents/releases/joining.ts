import { type Join, joinString } from '../../../core/join/join-string.ts'
import { joinLine } from '../../../core/join/lines.ts'
import { readPin, showPin } from '../../../core/pins.ts'
import type { Certificate } from '../../tls/certificate.ts'
import type { Releases } from './releases.ts'

/** How a host is told to join this server. */
export interface Joining {
  /**
   * By which hosts reach the server: `--public-url`, else the one that the caller gives, else where it listens; null where that
   * is every address.
   */
  urlFor(given: string | undefined): string | null
  /** Of an enrollment token; both null while no URL is known. Errors: `usage` for a URL or fingerprint that is none. */
  describe(
    token: string,
    from: { readonly url?: string | undefined; readonly fingerprint?: string | undefined },
  ): Promise<{ join: string | null; line: string | null }>
}

export interface JoiningParts {
  /** As hosts reach the server, whoever asks (`--public-url`). */
  readonly publicUrl?: string | undefined
  /** Where it listens, as hosts may reach it; null until it does, and on every address. */
  readonly ownUrl: () => string | null
  /** In force now; null without TLS. */
  readonly certificate: () => Certificate | null
  /** Whether `/install.sh` and `/dl` answer: without TLS, other than on loopback, what comes from them can be anyone's. */
  readonly isHandedOut: boolean
  readonly releases: Pick<Releases, 'builds'>
  readonly scriptSha256: string
}

/** The pin that a join string holds: only where no authority vouches for the server, or the caller pins it too. */
function fingerprintOf(own: Certificate | null, pinned: string | undefined): string | undefined {
  if (pinned === undefined) return own?.selfSigned ? own.fingerprint : undefined
  const pin = showPin(readPin(pinned))
  // Of the certificate that serves: its key is what curl can pin, and what lasts.
  return own !== null && pin === own.certificatePin ? own.fingerprint : pin
}

export function createJoining(parts: JoiningParts): Joining {
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
