import { existsSync, readFileSync } from 'node:fs'
import { RsmError } from '../core/errors.ts'

/** The certificates of the system, where this Node does not read them itself. */
const systemBundles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

/** Node's certificates, the system's, and those of `caFile` (contract §9), as PEM. Errors: `usage`, naming the file. */
export function trustedCertificates(caFile: string | undefined): string[] {
  const { rootCertificates } = process.getBuiltinModule('node:tls')
  const all = [...rootCertificates]
  const bundle = systemBundles.find((path) => existsSync(path))
  if (bundle !== undefined) all.push(readFileSync(bundle, 'utf8'))
  if (caFile === undefined) return all
  try {
    all.push(readFileSync(caFile, 'utf8'))
  } catch (error) {
    throw new RsmError('usage', `cannot read the certificates in ${caFile}: ${(error as Error).message}`)
  }
  return all
}
