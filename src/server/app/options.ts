import { isInTheClear, isLoopback, normalUrl } from '../../core/endpoint.ts'
import { RsmError } from '../../core/errors.ts'
import type { LogLevel } from '../../core/protocol/control.ts'
import type { Clock } from '../../disk/clock.ts'
import type { PasswordCost } from '../access/passwords.ts'
import type { RecordingBound } from '../terminals/recording.ts'
import type { Endpoint } from '../terminals/relay/channel.ts'
import { type TlsOptions, wantsTls } from '../tls/tls.ts'
import type { WebhookAllowance } from '../webhooks/judge.ts'

export interface ServerOptions {
  host: string
  /** 0 for any free port. */
  port: number
  dataDir: string
  /**
   * `postgres://USER@HOST[,HOST…]/DATABASE`, shared by several servers (contract §12); then the data directory holds
   * only local data. By default it holds everything.
   */
  store?: string | undefined
  /** File whose first line is the password for `store`; ~/.pgpass by default. */
  storePasswordFile?: string | undefined
  /** Allows plain text to a `store` beyond loopback and Unix sockets; false by default. */
  insecureStore?: boolean
  /** Unique name of this server among those that share `store`. */
  serverName?: string | undefined
  /** `HOST:PORT` or URL by which other servers of `store` reach this one; its listen address by default. */
  advertise?: string | undefined
  /** Directory of signing key, sealing key and self-signed certificate; `keys` in the data directory by default. */
  keysDir?: string
  /** Seconds. */
  heartbeatInterval: number
  /** Seconds. */
  metricsInterval: number
  /** Seconds for which CPU or memory must be high before the host is WARNING; 600 by default. */
  warnAfter?: number
  /** Seconds without a data frame or an agent's ping after which a link is closed. */
  wsIdleTimeout: number
  /** Password of the first `admin` of an empty store; a random one by default. */
  adminPassword?: string
  /** Plain HTTP by default. */
  tls?: TlsOptions
  /** URL by which hosts reach the server, for join strings (the caller's URL by default) and links in webhooks. */
  publicUrl?: string | undefined
  /** Allows listening beyond loopback without TLS. */
  insecureHttp: boolean
  /** Webhook targets allowed beyond https and public addresses; none by default. */
  webhooks?: WebhookAllowance
  /** Milliseconds a host must be offline, or back, before webhooks report it; 60,000 and 15,000 by default. */
  webhookHostGrace?: { readonly offline: number; readonly online: number }
  /** Addresses and networks (CIDR) of proxies whose forwarding headers are trusted; none by default. */
  trustedProxies?: readonly string[]
  logLevel: LogLevel
  /** Whether audit entries include the first line of a script; true by default. */
  auditCommands?: boolean
  /** Days for which ended tasks are kept, with their output; 0 = forever; 30 by default (contract §4). */
  taskRetention?: number
  /** Bytes of output on disk past which the oldest ended tasks are removed early; 0 = unlimited, the default. */
  maxOutputBytes?: number
  /** Bytes of the largest file copied to or fetched from hosts; 2 GiB by default (contract §13). */
  maxFileSize?: number | undefined
  /** Bytes of a user's unused uploads; by default 20 GiB, or ten of the largest files if that is more. */
  maxUploadBytes?: number | undefined
  /** Whether terminal sessions are recorded; true by default. */
  recordTerminals?: boolean
  /** Largest recording, and whether its session continues beyond that; 256 MiB, and the session ends, by default. */
  recordingBound?: RecordingBound
  /** Days for which ended terminal sessions are kept, with their recording; 0 = forever; 90 by default. */
  recordingRetention?: number
  /** Seconds without data in either direction after which a terminal session ends; 0 = never; 3600 by default. */
  terminalIdleLimit?: number
  /** Whether `/metrics` requires no token; false by default. */
  metricsOpen?: boolean
  /** Whether missing, damaged or mismatched keys are replaced by new ones instead of refusing to start. */
  newKeys?: boolean
  /** For new passwords; existing ones keep theirs. */
  passwordCost?: PasswordCost
  /** System clock by default. */
  clock?: Clock
  /** Milliseconds from the start to the first removal of expired data; 60,000 by default. */
  firstSweepAfter?: number
}

/** Errors: `usage` if the options would send secrets in plain text or those of TLS contradict each other. */
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

/** Errors: `usage` for an invalid address, or one to which terminals would be sent in plain text. */
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

/** How other servers reach this one; `advertise` is `HOST:PORT` or the URL of a proxy with its own certificate. */
export function endpointOf(
  { advertise }: Pick<ServerOptions, 'advertise'>,
  address: string,
  pin: string | null,
): Endpoint {
  if (advertise === undefined) return { url: address, pin }
  if (advertise.includes('://')) return { url: normalUrl(advertise), pin: null }
  return { url: `${new URL(address).protocol}//${advertise}`, pin }
}

/** Why the server cannot listen on the address, with a hint. */
export function explainListen(error: NodeJS.ErrnoException, { host, port }: ServerOptions): RsmError {
  if (error.code === 'EADDRINUSE')
    return new RsmError('unavailable', `port ${port} of ${host} is in use`, {
      hint: 'stop the program that uses it, or choose another port with --port (0 for any free one)',
      cause: error,
    })
  return new RsmError('unavailable', `Could not listen on ${host} port ${port}: ${error.message}`, {
    cause: error,
  })
}
