import { isInTheClear, isLoopback, normalUrl } from '../../core/endpoint.ts'
import { RsmError } from '../../core/errors.ts'
import type { LogLevel } from '../../core/protocol/control.ts'
import type { Clock } from '../../disk/clock.ts'
import type { PasswordCost } from '../access/passwords.ts'
import type { RecordingBound } from '../terminals/recording.ts'
import type { Endpoint } from '../terminals/relay/dial.ts'
import { type TlsOptions, wantsTls } from '../tls/tls.ts'
import type { WebhookAllowance } from '../webhooks/judge.ts'

export interface ServerOptions {
  host: string
  /** 0 takes any free port. */
  port: number
  dataDir: string
  /**
   * `postgres://USER@HOST[,HOST…]/DATABASE`, which servers share (contract §12). The data directory has it all by default; with
   * this it has what is local only.
   */
  store?: string | undefined
  /** Its first line is the password for `store`; what ~/.pgpass says by default. */
  storePasswordFile?: string | undefined
  /** Allows plain text to a `store` beyond loopback and Unix sockets; false by default. */
  insecureStore?: boolean
  /** Of this server among those of `store`, each of which has another. */
  serverName?: string | undefined
  /** How other servers of `store` reach this one, `HOST:PORT` or a URL; the address that it listens on by default. */
  advertise?: string | undefined
  /** Where the signing and sealing keys are, and the pair of a self-signed certificate; `keys` in the data directory by default. */
  keysDir?: string
  /** Seconds. */
  heartbeatInterval: number
  /** Seconds. */
  metricsInterval: number
  /** Seconds for which cpu or memory has to be high until the host is WARNING; 600 by default. */
  warnAfter?: number
  /** Seconds without a data frame or an agent's ping after which a link is closed. */
  wsIdleTimeout: number
  /** Password of the first `admin` of an empty store; a random one by default. */
  adminPassword?: string
  /** Plain HTTP by default. */
  tls?: TlsOptions
  /** How hosts reach the server, in what they are told to join by (as the caller reaches it by default), and links in webhooks. */
  publicUrl?: string | undefined
  /** Allows a host other than loopback without TLS. */
  insecureHttp: boolean
  /** Where webhooks may lead beyond https and public addresses; nowhere by default. */
  webhooks?: WebhookAllowance
  /** Milliseconds for which a host has to be offline, or back, until webhooks hear of it; 60,000 and 15,000 by default. */
  webhookHostGrace?: { readonly offline: number; readonly online: number }
  /** Addresses and networks (CIDR) of proxies that say who the client is; none by default. */
  trustedProxies?: readonly string[]
  logLevel: LogLevel
  /** Whether entries of the audit log have the first line of what runs; true by default. */
  auditCommands?: boolean
  /** Days for which ended tasks are kept, with their output; 0 = for good; 30 by default (contract §4). */
  taskRetention?: number
  /** Bytes of output on disk past which the oldest ended tasks go before their days are over; 0 = any, the default. */
  maxOutputBytes?: number
  /** Bytes of the largest file that is taken for hosts, or from one; 2 GiB by default (contract §13). */
  maxFileSize?: number | undefined
  /** Bytes of one user's uploads that wait for a task; 20 GiB, or ten of the largest files if that is more, by default. */
  maxUploadBytes?: number | undefined
  /** Whether terminal sessions are recorded; true by default. */
  recordTerminals?: boolean
  /** How long a recording may be, and whether its session goes on behind that; 256 MiB, and it ends, by default. */
  recordingBound?: RecordingBound
  /** Days for which ended terminal sessions are kept, with their recording; 0 = for good; 90 by default. */
  recordingRetention?: number
  /** Seconds without data in either direction after which a terminal session ends; 0 = none; 3600 by default. */
  terminalIdleLimit?: number
  /** Whether `/metrics` answers without a token; false by default. */
  metricsOpen?: boolean
  /** Whether keys that are missing, damaged or another store's are replaced by new ones; refused by default. */
  newKeys?: boolean
  /** Of new passwords; those that there are keep theirs. */
  passwordCost?: PasswordCost
  /** The system's by default. */
  clock?: Clock
  /** Milliseconds from the start until what is past its time is removed for the first time; 60,000 by default. */
  firstSweepAfter?: number
}

/** Errors: `usage` where the options would send secrets in the clear, or those of TLS contradict each other. */
export function refuseOpenHttp({
  host,
  insecureHttp,
  tls = {},
}: Pick<ServerOptions, 'host' | 'insecureHttp' | 'tls'>): void {
  if (wantsTls(tls) || insecureHttp || isLoopback(host)) return
  throw new RsmError(
    'usage',
    `Listening on ${host} without TLS would send passwords, tokens and scripts in the clear`,
    {
      hint: 'add --tls-self-signed, or --tls-cert and --tls-key; put a TLS proxy in front and listen on 127.0.0.1; or accept it with --insecure-http',
    },
  )
}

/** Errors: `usage` for an invalid address, or one to which terminals would be sent in the clear. */
export function refuseAdvertised({
  advertise,
  tls = {},
  insecureHttp,
}: Pick<ServerOptions, 'advertise' | 'tls' | 'insecureHttp'>): void {
  if (advertise === undefined) return
  const isUrl = advertise.includes('://')
  const url = isUrl ? normalUrl(advertise) : `http${wantsTls(tls) ? 's' : ''}://${advertise}`
  if (!isUrl && !(hostAndPort.test(advertise) && URL.canParse(url))) {
    // A password must not end up in logs.
    const shown = advertise.includes('@') ? '...' : advertise
    throw new RsmError('usage', `--advertise takes HOST:PORT or a URL, not ${shown}`)
  }
  if (isInTheClear(url) && !insecureHttp)
    throw new RsmError(
      'usage',
      `--advertise ${advertise} would send terminals between servers in the clear`,
      {
        hint: 'use an https:// URL, or --tls-self-signed with HOST:PORT; or accept it with --insecure-http',
      },
    )
}

const hostAndPort = /^(?:[\w.-]+|\[[\da-f:.]+\]):\d{1,5}$/i

/** How other servers reach this one: at `advertise`, which is `HOST:PORT` or the URL of a proxy with a certificate of its own. */
export function endpointOf(
  { advertise }: Pick<ServerOptions, 'advertise'>,
  address: string,
  pin: string | null,
): Endpoint {
  if (advertise === undefined) return { url: address, pin }
  if (advertise.includes('://')) return { url: normalUrl(advertise), pin: null }
  return { url: `${new URL(address).protocol}//${advertise}`, pin }
}

/** Why the address can not be listened on, and what to do. */
export function explainListen(error: NodeJS.ErrnoException, { host, port }: ServerOptions): RsmError {
  if (error.code === 'EADDRINUSE')
    return new RsmError('unavailable', `port ${port} of ${host} is in use`, {
      hint: 'stop what listens there, or choose another with --port (0 takes any free one)',
      cause: error,
    })
  return new RsmError('unavailable', `Could not listen on ${host} port ${port}: ${error.message}`, {
    cause: error,
  })
}
