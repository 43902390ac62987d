import { RsmError } from './errors.ts'

/** What `--tls-fingerprint` takes (contract §9): the SHA-256 of a server's key or of its whole certificate. */
export interface Pin {
  readonly of: 'key' | 'certificate'
  /** Base64 of a key's, 64 hex digits of a certificate's. */
  readonly sha256: string
}

const ofKey = /^sha256\/\/(?<hash>[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)$/
const ofCertificate = /^(?:sha-?256:)?(?<hash>[0-9a-f]{64})$/i

/** Colons and case of a certificate's do not matter, nor its leading `sha256:`. Errors: `usage`. */
export function readPin(text: string): Pin {
  const key = ofKey.exec(text)?.groups?.['hash']
  if (key !== undefined) return { of: 'key', sha256: key }
  const [, algorithm = '', rest = ''] = /^(sha-?256:)?(.*)$/is.exec(text) ?? []
  const hex = ofCertificate.exec(algorithm + rest.replaceAll(':', ''))?.groups?.['hash']
  if (hex !== undefined) return { of: 'certificate', sha256: hex.toLowerCase() }
  throw new RsmError('usage', `not a SHA-256 fingerprint: ${text}`, {
    hint: 'rsm server start prints it as `fingerprint sha256//…`; sha256: and 64 hex digits is that of a certificate',
  })
}

/** As `--tls-fingerprint` takes it. */
export const showPin = ({ of, sha256 }: Pin): string => (of === 'key' ? 'sha256//' : 'sha256:') + sha256
