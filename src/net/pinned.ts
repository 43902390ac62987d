import type { X509Certificate } from 'node:crypto'
import { type Pin, showPin } from '../core/pins.ts'

/** The pin of the certificate's key (SPKI, as curl's --pinnedpubkey), or of the whole certificate. */
function pinOf(certificate: X509Certificate, of: Pin['of']): Pin {
  if (of === 'certificate')
    return { of, sha256: certificate.fingerprint256.replaceAll(':', '').toLowerCase() }
  const { hash } = process.getBuiltinModule('node:crypto')
  const key = certificate.publicKey.export({ type: 'spki', format: 'der' })
  return { of, sha256: hash('sha256', key, 'base64') }
}

/** The pin of the key of a certificate in PEM, as `showPin` has it. */
export function keyPin(pem: Buffer): string {
  const { X509Certificate } = process.getBuiltinModule('node:crypto')
  return showPin(pinOf(new X509Certificate(pem), 'key'))
}

/** What is wrong with the certificate that a server showed; null where it fits the pin. */
export function mismatch(pin: Pin, shown: X509Certificate | undefined): string | null {
  if (shown === undefined) return 'it shows no certificate'
  const found = pinOf(shown, pin.of)
  return found.sha256 === pin.sha256
    ? null
    : `its ${pin.of} is ${showPin(found)}, not the pinned ${showPin(pin)}`
}
