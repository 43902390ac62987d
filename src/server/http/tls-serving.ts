import type { Log } from '../../disk/log.ts'
import type { Tls } from '../tls/tls.ts'
import type { Listener } from './listener.ts'

/** The certificate that the listener shows, over renewals. */
export interface Serving {
  /** Of the key that serves now, `sha256//` and base64; null without TLS. */
  readonly fingerprint: string | null
  /** Whether nobody but itself has signed that certificate. */
  readonly selfSigned: boolean
  /** Takes up the certificate that is in its files now; keeps the old one, with an error in the log, if that is bad. */
  reload(): Promise<void>
}

export function serveCertificate(tls: Tls | null, listener: Listener, log: Log): Serving {
  let current = tls?.certificate ?? null
  return {
    get fingerprint() {
      return current?.fingerprint ?? null
    },
    get selfSigned() {
      return current?.selfSigned === true
    },
    async reload() {
      if (tls === null) return
      try {
        const renewed = await tls.renewed()
        listener.useCertificate(renewed)
        current = renewed
        const { fingerprint, expiresAt } = renewed
        log.info(
          { fingerprint, expiresAt: new Date(expiresAt).toISOString() },
          'this TLS certificate is in force now',
        )
      } catch (error) {
        // The sentence says which file; a stack would say nothing more.
        const reason = error instanceof Error ? error.message : String(error)
        log.error({ reason }, 'the new TLS certificate is not usable; the old one stays in force')
      }
    },
  }
}
