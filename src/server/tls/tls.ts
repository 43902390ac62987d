import { RsmError } from '../../core/errors.ts'
import type { Log } from '../../disk/log.ts'
import { type Certificate, readCertificate } from './certificate.ts'
import { keptCertificate } from './self-signed.ts'

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
