import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { writeFileDurably } from '../../disk/durable.ts'
import type { Log } from '../../disk/log.ts'
import { type Certificate, pair } from './certificate.ts'

const day = 24 * 60 * 60 * 1000
/**
 * Ten years: each new certificate breaks the pins of whole certificates. (Apple's browsers want 825 days at most, but they warn of a
 * certificate that nobody signed anyway; the command line and the agent do not mind.)
 */
const life = 3650 * day
const renewBefore = 30 * day
/** Addresses that mean every address of the machine. */
const anyAddress = new Set(['0.0.0.0', '::'])

function covers(certificate: X509Certificate, host: string): boolean {
  if (anyAddress.has(host)) return true
  return (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined
}

/** What the server may be reached by: names, then addresses, each once. */
function namesOf(host: string): string[] {
  const addresses = Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    // An address with a zone (fe80::1%eth0) is none that a certificate can hold.
    .filter(({ address, scopeid }) => !address.includes('%') && !scopeid)
    .map(({ address }) => address)
  const all = ['localhost', hostname(), '127.0.0.1', '::1', ...addresses, host]
  return [...new Set(all)].filter((name) => name !== '' && !anyAddress.has(name))
}

/** `key`: of the certificate that this one replaces, so that pins of the key stay good. */
async function make(host: string, now: number, key: string | null): Promise<{ cert: string; key: string }> {
  // Loaded at the first start only: its ASN.1 and X.509 libraries are of no use afterwards.
  // By `default`: no bundler sees the names of a CommonJS module that is imported late.
  const { generate } = (await import('selfsigned')).default
  const made = await generate([{ name: 'commonName', value: 'rsm server' }], {
    keyType: 'ec',
    curve: 'P-256',
    ...(key !== null && { keyPair: { privateKey: key, publicKey: publicOf(key) } }),
    algorithm: 'sha256',
    // A clock that is an hour behind must not refuse a certificate of today.
    notBeforeDate: new Date(now - day),
    notAfterDate: new Date(now + life),
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: namesOf(host).map((name) =>
          isIP(name) === 0 ? { type: 2 as const, value: name } : { type: 7 as const, ip: name },
        ),
      },
    ],
  })
  return { cert: made.cert, key: made.private }
}

async function readKept(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

const publicOf = (key: string): string =>
  createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString()

/** The key if a new certificate can be made of it, else null. */
function usableKey(key: string | null): string | null {
  try {
    return key !== null && createPrivateKey(key).asymmetricKeyDetails?.namedCurve === 'prime256v1'
      ? key
      : null
  } catch {
    return null
  }
}

/** Why the kept pair is of no use any more; null while it is. */
function staleness(
  kept: { cert: string; key: string },
  files: { cert: string; key: string },
  host: string,
  now: number,
): string | null {
  try {
    const { expiresAt } = pair(kept.cert, kept.key, files)
    if (!covers(new X509Certificate(kept.cert), host)) return `it does not name ${host}`
    return expiresAt - now < renewBefore ? 'it ends soon' : null
  } catch (error) {
    // A crash between the two writes leaves a key with another certificate; nothing is lost by a new pair.
    return (error as Error).message
  }
}

/**
 * The certificate kept in `directory` (tls.crt and tls.key, mode 0600). It is made at the first start, and anew when it
 * does not name `host` or ends within 30 days. The key stays, and so does the pin of it, as long as it can be read.
 */
export async function keptCertificate(
  directory: string,
  host: string,
  log: Log,
  now: number,
): Promise<Certificate> {
  const certFile = join(directory, 'tls.crt')
  const keyFile = join(directory, 'tls.key')
  const files = { cert: certFile, key: keyFile }
  const [cert, key] = [await readKept(certFile), await readKept(keyFile)]
  const reason = cert === null || key === null ? undefined : staleness({ cert, key }, files, host, now)
  if (cert !== null && key !== null && reason === null) return pair(cert, key, files)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const kept = usableKey(key)
  const made = await make(host, now, kept)
  await writeFileDurably(keyFile, made.key, 0o600)
  await writeFileDurably(certFile, made.cert, 0o600)
  const certificate = pair(made.cert, made.key, files)
  const { fingerprint } = certificate
  if (typeof reason !== 'string') log.info({ fingerprint }, 'made a self-signed certificate')
  else if (kept !== null)
    log.warn(
      { fingerprint, reason },
      'made a new self-signed certificate with the same key: only pins sha256:HEX of the old one have to change',
    )
  else
    log.warn(
      { fingerprint, reason },
      'made a new self-signed certificate; pins of the old one have to change',
    )
  return certificate
}
