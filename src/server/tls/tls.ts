import { RsmError } from '../../core/errors.ts'
import type { Log } from '../../disk/log.ts'
import { type Certificate, readCertificate } from './certificate.ts'
import { keptCertificate } from './self-signed.ts'

/** How the server speaks TLS (contract §9): with files of the operator's, with a certificate of its own, or not at all. */
export interface TlsOptions {
  readonly certFile?: string | undefined
  readonly keyFile?: string | undefined
  readonly selfSigned?: boolean | undefined
  /** Strict-Transport-Security with every answer; only with files of the operator's. */
  readonly hsts?: boolean | undefined
}

/** The certificate in force, and how to take up another. */
export interface Tls {
  readonly certificate: Certificate
  /** Reads the files again. Errors: as at the start; the former certificate stays in force then. */
  renewed(): Promise<Certificate>
}

/** Whether the options ask for TLS. Errors: `usage`, where they contradict each other. */
export function wantsTls({ certFile, keyFile, selfSigned, hsts }: TlsOptions): boolean {
  if ((certFile === undefined) !== (keyFile === undefined))
    throw new RsmError(
      'usage',
      `--tls-${certFile === undefined ? 'key' : 'cert'} needs --tls-${certFile === undefined ? 'cert' : 'key'} beside it`,
      {
        hint: 'a certificate and its private key, both in PEM; or --tls-self-signed',
      },
    )
  if (certFile !== undefined && selfSigned === true)
    throw new RsmError('usage', '--tls-self-signed makes a certificate: it does not go with --tls-cert')
  if (certFile === undefined && hsts === true)
    throw new RsmError('usage', '--hsts needs --tls-cert and --tls-key beside it', {
      hint: 'a browser that insists on TLS accepts no self-signed certificate; a proxy in front sets the header itself',
    })
  return certFile !== undefined || selfSigned === true
}

function noteExpiry({ expiresAt, fingerprint }: Certificate, file: string, log: Log): void {
  if (expiresAt > Date.now()) return
  // A server that starts and warns can be mended from afar; one that refuses can not.
  log.warn(
    { file, fingerprint, expiredAt: new Date(expiresAt).toISOString() },
    'the TLS certificate has expired: renew it and send SIGHUP; until then only pinned clients connect',
  )
}

/** Null without TLS. `directory` keeps the self-signed pair. Errors: `usage`, naming the file and what is wrong. */
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
