import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { RsmError } from '../../core/errors.ts'
import { nullWhereMissing, writeFileDurably } from '../../disk/durable.ts'
import type { Log } from '../../disk/log.ts'
import { type Certificate, pair, readCertificate } from './certificate.ts'

/** TLS of the server (contract §9): the operator's files, a self-signed certificate, or none. */
export interface TlsOptions {
  readonly certFile?: string | undefined
  readonly keyFile?: string | undefined
  readonly selfSigned?: boolean | undefined
  /** Sends Strict-Transport-Security with every answer; requires the operator's files. */
  readonly hsts?: boolean | undefined
}

export interface Tls {
  readonly certificate: Certificate
  /** Reads the files again. Errors: as at the start; the previous certificate then stays in use. */
  renewed(): Promise<Certificate>
}

/** Whether the options ask for TLS. Errors: `usage` if they contradict each other. */
export function wantsTls({ certFile, keyFile, selfSigned, hsts }: TlsOptions): boolean {
  if ((certFile === undefined) !== (keyFile === undefined))
    throw new RsmError(
      'usage',
      `--tls-${certFile === undefined ? 'key' : 'cert'} requires --tls-${certFile === undefined ? 'cert' : 'key'}`,
      {
        hint: 'a certificate and its private key, both in PEM; or --tls-self-signed',
      },
    )
  if (certFile !== undefined && selfSigned === true)
    throw new RsmError('usage', '--tls-self-signed cannot be combined with --tls-cert')
  if (certFile === undefined && hsts === true)
    throw new RsmError('usage', '--hsts requires --tls-cert and --tls-key', {
      hint: 'a browser that insists on TLS accepts no self-signed certificate; a proxy in front sets the header itself',
    })
  return certFile !== undefined || selfSigned === true
}

function noteExpiry({ expiresAt, fingerprint }: Certificate, file: string, log: Log): void {
  if (expiresAt > Date.now()) return
  // Warn instead of failing: a running server can be fixed remotely.
  log.warn(
    { file, fingerprint, expiredAt: new Date(expiresAt).toISOString() },
    'the TLS certificate has expired: renew it and send SIGHUP; until then only pinned clients connect',
  )
}

/** Null without TLS. `directory` keeps the self-signed pair. Errors: `usage`, naming the file and the fault. */
export async function openTls(
  options: TlsOptions,
  { directory, host, log }: { directory: string; host: string; log: Log },
): Promise<Tls | null> {
  if (!wantsTls(options)) return null
  const { certFile, keyFile } = options
  if (certFile === undefined || keyFile === undefined) {
    const certificate = await keptCertificate(directory, host, log, Date.now())
    return { certificate, renewed: async () => certificate }
  }
  const read = async () => {
    const certificate = await readCertificate(certFile, keyFile)
    noteExpiry(certificate, certFile, log)
    return certificate
  }
  let certificate = await read()
  return {
    get certificate() {
      return certificate
    },
    async renewed() {
      certificate = await read()
      return certificate
    },
  }
}

const day = 24 * 60 * 60 * 1000
/**
 * Ten years, because each new certificate breaks pins of whole certificates. Apple's browsers accept at most 825
 * days, but they warn of self-signed certificates anyway; the command line and the agent do not mind.
 */
const life = 3650 * day
const renewBefore = 30 * day
/** Listen addresses that mean all addresses. */
const anyAddress = new Set(['0.0.0.0', '::'])

/**
 * The certificate kept in `directory` (tls.crt and tls.key, mode 0600). It is created at the first start, and again
 * if it does not cover `host` or expires within 30 days. A readable key is reused, so that pins of it remain valid.
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

function covers(certificate: X509Certificate, host: string): boolean {
  if (anyAddress.has(host)) return true
  return (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined
}

/** Names, then addresses by which clients may reach the server. */
function namesOf(host: string): string[] {
  const addresses = Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    // Certificates cannot hold an address with a zone (fe80::1%eth0).
    .filter(({ address, scopeid }) => !address.includes('%') && !scopeid)
    .map(({ address }) => address)
  const all = ['localhost', hostname(), '127.0.0.1', '::1', ...addresses, host]
  return [...new Set(all)].filter((name) => name !== '' && !anyAddress.has(name))
}

/** `key`: that of the replaced certificate, so that pins of the key remain valid. */
async function make(host: string, now: number, key: string | null): Promise<{ cert: string; key: string }> {
  // Loaded on demand: its ASN.1 and X.509 libraries only serve to make a certificate.
  // By `default`: bundlers cannot resolve named exports of a CommonJS module in a dynamic import.
  const { generate } = (await import('selfsigned')).default
  const made = await generate([{ name: 'commonName', value: 'rsm server' }], {
    keyType: 'ec',
    curve: 'P-256',
    ...(key !== null && { keyPair: { privateKey: key, publicKey: publicOf(key) } }),
    algorithm: 'sha256',
    // Backdated, so that clients with a slow clock accept it.
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

const readKept = (file: string): Promise<string | null> => readFile(file, 'utf8').catch(nullWhereMissing)

const publicOf = (key: string): string =>
  createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString()

/** The key if it suits a new certificate, else null. */
function usableKey(key: string | null): string | null {
  try {
    return key !== null && createPrivateKey(key).asymmetricKeyDetails?.namedCurve === 'prime256v1'
      ? key
      : null
  } catch {
    return null
  }
}

/** Why the kept pair must be replaced; null while it is valid. */
function staleness(
  kept: { cert: string; key: string },
  files: { cert: string; key: string },
  host: string,
  now: number,
): string | null {
  try {
    const { expiresAt } = pair(kept.cert, kept.key, files)
    if (!covers(new X509Certificate(kept.cert), host)) return `it does not name ${host}`
    return expiresAt - now < renewBefore ? 'it expires soon' : null
  } catch (error) {
    // A crash between the two writes leaves a mismatched pair; replacing it loses nothing.
    return (error as Error).message
  }
}
