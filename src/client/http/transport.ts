import { RsmError } from '../../core/errors.ts'
import { type Connection, rootOf } from '../../net/connect.ts'
import { portOf } from '../../net/proxy.ts'
import { openRequests, type Patience, type Send } from '../../net/request.ts'

const meanings: Record<string, string> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection lost',
  EPIPE: 'connection lost',
  ENOTFOUND: 'no such host name',
  EAI_AGAIN: 'the name service does not answer',
  ETIMEDOUT: 'no answer in time',
  EHOSTUNREACH: 'no route to it',
  ENETUNREACH: 'no route to its network',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  EPROTO: 'it does not speak TLS there',
}

/** Failures after which the server may have received the request. */
const lostCodes = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'RSM_SILENT'])

function codeOf(error: unknown): string {
  const { code } = rootOf(error)
  return typeof code === 'string' ? code : ''
}

/** Whether the request may have been carried out although no answer arrived. */
export function isLost(error: unknown): boolean {
  return error instanceof RsmError && error.code === 'unreachable' && lostCodes.has(codeOf(error.cause))
}

function hintFor({ url, base, proxy, caFile }: Connection, code: string): string {
  if (code === 'untrusted' && caFile !== undefined)
    return `${caFile} contains neither this certificate nor the authority that signed it; to compare: openssl s_client -showcerts -connect ${base.hostname}:${portOf(base)}`
  if (code === 'untrusted') return 'trust it with --ca-file FILE, or pin it with --tls-fingerprint PIN'
  if (code === 'RSM_PIN_MISMATCH')
    return 'ask who runs the server whether it has a new certificate; if so: rsm login URL --tls-fingerprint PIN'
  if (code === 'PROXY_407') return 'it requires a password: HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT'
  if (proxy !== null) return 'see HTTPS_PROXY and HTTP_PROXY; hosts in NO_PROXY bypass it'
  if (code === 'EPROTO') return 'if unencrypted traffic is acceptable, use http://'
  if (url.startsWith('http:') && code.startsWith('HPE_')) return 'if the server speaks TLS, use https://'
  if (url.startsWith('http:') && code === 'ECONNRESET')
    return 'check the server and its load balancer; if they accept TLS only, use https://'
  return 'is the server up? try another with --url or `rsm login URL`'
}

export function unreachable(connection: Connection, error: unknown): RsmError {
  const { url, proxy } = connection
  const code = codeOf(error)
  const untrusted = /^(UNABLE_TO|SELF_SIGNED|DEPTH_ZERO)/.test(code)
  const meaning = code.startsWith('HPE_') ? 'the answer is not HTTP' : meanings[code]
  const why = untrusted ? 'its certificate is not trusted' : (meaning ?? rootOf(error).message)
  // Leaves out user and password of the proxy's URL.
  const through = proxy === null ? '' : ` through the proxy ${proxy.host}`
  const hint = hintFor(connection, untrusted ? 'untrusted' : code)
  return new RsmError('unreachable', `cannot reach ${url}${through}: ${why}`, { hint, cause: error })
}

/** Sends requests over a connection; they reject with `unreachable` if no answer arrives. */
export function openTransport(connection: Connection, patience?: Patience): Send {
  return openRequests(connection, (error) => unreachable(connection, error), patience)
}
