import { existsSync, readFileSync } from 'node:fs'
import { blocksOf, readCertificates } from '../disk/certificates.ts'
import type { Warn } from './proxy.ts'

/** The certificates of the system, where this Node does not read them itself. */
const systemBundles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

/**
 * Node's certificates, the system's, and those of `caFile` (contract §9), as options of TLS. Each counts as an
 * authority, as in curl: an intermediate or the server's own certificate is enough. Errors: `usage`, naming the file.
 */
export function trustOptions(caFile: string | undefined, warn?: Warn, bundles = systemBundles) {
  const { rootCertificates } = process.getBuiltinModule('node:tls')
  const ca = [...rootCertificates]
  const bundle = bundles.find((path) => existsSync(path))
  // As one text, it would end at its first damaged block.
  if (bundle !== undefined) ca.push(...blocksOf(readFileSync(bundle, 'utf8')))
  if (caFile !== undefined) ca.push(...readCertificates(caFile, warn))
  return { ca, allowPartialTrustChain: true }
}
