import { existsSync, readFileSync } from 'node:fs'
import { RsmError } from '../core/errors.ts'
import { readBoundedFile } from '../disk/bounded-file.ts'
import { whyUnreadable } from '../disk/unreadable.ts'

/** The certificates of the system, where this Node does not read them itself. */
const systemBundles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

/**
 * The certificates of a file, as PEM: what is none would be passed over in silence, and the server then be told to be the
 * culprit. Errors: `usage`.
 */
export function readCertificates(path: string): string {
  try {
    const text = readBoundedFile(path).toString('utf8')
    const { X509Certificate } = process.getBuiltinModule('node:crypto')
    void new X509Certificate(text)
    return text
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    const why = code.startsWith('ERR_OSSL') ? 'it holds no certificate in PEM' : whyUnreadable(error)
    throw new RsmError('usage', `cannot read the certificates in ${path}: ${why}`)
  }
}

/** Node's certificates, the system's, and those of `caFile` (contract §9), as PEM. Errors: `usage`, naming the file. */
export function trustedCertificates(caFile: string | undefined): string[] {
  const { rootCertificates } = process.getBuiltinModule('node:tls')
  const all = [...rootCertificates]
  const bundle = systemBundles.find((path) => existsSync(path))
  if (bundle !== undefined) all.push(readFileSync(bundle, 'utf8'))
  if (caFile === undefined) return all
  all.push(readCertificates(caFile))
  return all
}
