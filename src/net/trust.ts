import type { X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { type Pin, showPin } from '../core/endpoint.ts'
import { blocksOf, readCertificates } from '../disk/certificates.ts'
import type { Warn } from './proxy.ts'

/** System certificates, for versions of Node that do not read them. */
const systemBundles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

/**
 * TLS options that trust Node's certificates, the system's and those of `caFile` (contract §9). Each counts
 * as an authority, as in curl: an intermediate or the server's own certificate is enough. Errors: `usage`,
 * with the file.
 */
export function trustOptions(caFile: string | undefined, warn?: Warn, bundles = systemBundles) {
  const { rootCertificates } = process.getBuiltinModule('node:tls')
  const ca = [...rootCertificates]
  const bundle = bundles.find((path) => existsSync(path))
  // Split, because TLS would stop at the first damaged block.
  if (bundle !== undefined) ca.push(...blocksOf(readFileSync(bundle, 'utf8')))
  if (caFile !== undefined) ca.push(...readCertificates(caFile, warn))
  return { ca, allowPartialTrustChain: true }
}

/** The pin of the certificate's key (SPKI, as curl's --pinnedpubkey), or of the whole certificate. */
function pinOf(certificate: X509Certificate, of: Pin['of']): Pin {
  if (of === 'certificate')
    return { of, sha256: certificate.fingerprint256.replaceAll(':', '').toLowerCase() }
  const { hash } = process.getBuiltinModule('node:crypto')
  const key = certificate.publicKey.export({ type: 'spki', format: 'der' })
  return { of, sha256: hash('sha256', key, 'base64') }
}

/** Pin of the key of a PEM certificate, in the format of `showPin`. */
export function keyPin(pem: Buffer): string {
  const { X509Certificate } = process.getBuiltinModule('node:crypto')
  return showPin(pinOf(new X509Certificate(pem), 'key'))
}

/** Why a server's certificate does not match the pin; null if it does. */
export function mismatch(pin: Pin, certificate: X509Certificate | undefined): string | null {
  if (certificate === undefined) return 'it shows no certificate'
  const found = pinOf(certificate, pin.of)
  return found.sha256 === pin.sha256
    ? null
    : `its ${pin.of} is ${showPin(found)}, not the pinned ${showPin(pin)}`
}
