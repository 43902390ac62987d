import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { readPin, showPin } from '../../core/endpoint.ts'
import { RsmError } from '../../core/errors.ts'
import { certificatesIn } from '../../disk/certificates.ts'
import { whyUnreadable } from '../../disk/named-files.ts'

/** A certificate with its key, as PEM, checked to belong together. */
export interface Certificate {
  readonly key: string
  /** The server's certificate, then intermediate ones. */
  readonly cert: string
  /** SHA-256 of the public key (SPKI) as `sha256//` and base64, for `--tls-fingerprint` and curl's --pinnedpubkey. */
  readonly fingerprint: string
  /** SHA-256 of the whole certificate, `sha256:` and 64 hex digits. */
  readonly certificatePin: string
  /** Signed by its own key: clients trust it only with a pin or `--ca-file`. */
  readonly selfSigned: boolean
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

async function readPem(path: string, option: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new RsmError('usage', `cannot read ${path} (${option}): ${whyUnreadable(error, 'the server')}`, {
      cause: error,
    })
  }
}

function parseCertificate(pem: string, path: string): X509Certificate {
  const { sound, faults } = certificatesIn(pem)
  const [first] = sound
  if (first !== undefined && faults.length === 0) return new X509Certificate(first)
  const [fault] = faults
  throw new RsmError(
    'usage',
    `${path} (--tls-cert) ${fault === undefined ? 'contains no PEM certificate' : `is invalid: ${fault}`}`,
    { hint: 'give the full chain in PEM, the certificate of the server first' },
  )
}

function parseKey(pem: string, path: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch (error) {
    const locked = pem.includes('ENCRYPTED')
    throw new RsmError(
      'usage',
      locked
        ? `the key in ${path} (--tls-key) has a passphrase`
        : `${path} (--tls-key) contains no PEM private key`,
      {
        hint: locked
          ? 'remove it (openssl pkey -in OLD -out NEW) and keep the file readable to the server alone'
          : 'give the private key of the certificate in PEM',
        cause: error,
      },
    )
  }
}

/** Errors: `usage`, naming the file, for invalid PEM or a key that belongs to another certificate. */
export function pair(
  cert: string,
  key: string,
  files: { readonly cert: string; readonly key: string },
): Certificate {
  const parsed = parseCertificate(cert, files.cert)
  if (!parsed.checkPrivateKey(parseKey(key, files.key)))
    throw new RsmError(
      'usage',
      `the key in ${files.key} does not belong to the certificate in ${files.cert}`,
      {
        hint: 'give the two files that were issued together; the certificate of the server comes first in its file',
      },
    )
  return {
    key,
    cert,
    certificatePin: showPin(readPin(parsed.fingerprint256)),
    fingerprint: keyPin(parsed),
    selfSigned: parsed.subject === parsed.issuer && parsed.verify(parsed.publicKey),
    expiresAt: Date.parse(parsed.validTo),
  }
}

/** Pin of a certificate's key, in the format of `--tls-fingerprint`. */
export function keyPin({ publicKey }: X509Certificate): string {
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  return showPin({ of: 'key', sha256: createHash('sha256').update(spki).digest('base64') })
}

/** Reads the files of `--tls-cert` and `--tls-key`. Errors: `usage`, naming the file. */
export async function readCertificate(certFile: string, keyFile: string): Promise<Certificate> {
  const cert = await readPem(certFile, '--tls-cert')
  const key = await readPem(keyFile, '--tls-key')
  return pair(cert, key, { cert: certFile, key: keyFile })
}
