import type { IncomingMessage, RequestOptions } from 'node:http'
import type { Agent as HttpsAgent } from 'node:https'
import { RsmError } from '../../core/errors.ts'
import type { Endpoint, Incoming, Outgoing, Send } from './send.ts'

/** How long the server may take to begin its answer. */
const answerTimeout = 60_000
const connectTimeout = 10_000
/** How long it may say nothing within an answer; comments of event streams come every 15 s (contract §5). */
const longestSilence = 45_000

const meanings: Record<string, string> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection lost',
  EPIPE: 'connection lost',
  ENOTFOUND: 'no such host name',
  EAI_AGAIN: 'the name service does not answer',
  ETIMEDOUT: 'no answer in time',
  RSM_SILENT: 'its answer has stopped half-way',
  UND_ERR_HEADERS_TIMEOUT: 'no answer in time',
  EHOSTUNREACH: 'no route to it',
  ENETUNREACH: 'no route to its network',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  EPROTO: 'it does not speak TLS there',
}

/** Failures after which the server may have got the request. */
const lostCodes = new Set([
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'RSM_SILENT',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
])

function codeOf(error: unknown): string {
  const cause = error instanceof AggregateError ? (error.errors[0] as unknown) : error
  return cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : ''
}

/** Whether the request may have been carried out although no answer came. */
export function isLost(error: unknown): boolean {
  return error instanceof RsmError && error.code === 'unreachable' && lostCodes.has(codeOf(error.cause))
}

function hintFor(url: string, code: string): string {
  if (code === 'untrusted') return 'trust it with --ca-file FILE, or pin it with --tls-fingerprint SHA256'
  if (code === 'RSM_PIN_MISMATCH')
    return 'ask who runs the server whether it has a new certificate; if so: rsm login URL --tls-fingerprint SHA256'
  if (code === 'EPROTO') return 'then write http://, if what is sent may be read on its way'
  if (url.startsWith('http:') && code === 'ECONNRESET') return 'does it speak TLS there? then write https://'
  return 'is the server up? try another with --url or `rsm login URL`'
}

/** That no answer came from `url`, why, and what to try. */
export function unreachable(url: string, error: unknown): RsmError {
  const code = codeOf(error)
  const untrusted = /^(UNABLE_TO|SELF_SIGNED|DEPTH_ZERO)/.test(code)
  const why = untrusted
    ? 'its certificate is not trusted'
    : (meanings[code] ?? (error instanceof Error ? error.message : String(error)))
  const hint = hintFor(url, untrusted ? 'untrusted' : code)
  return new RsmError('unreachable', `cannot reach ${url}: ${why}`, { hint, cause: error })
}

/** So often it is looked at in that time: a process that was stopped for an hour has not waited for an hour. */
const looks = 9

/** Ends an answer of which nothing comes any more. A reader that takes its time is no silence: then bytes lie here. */
function endWhenSilent(incoming: IncomingMessage, silence: number, error: () => Error): void {
  const { socket } = incoming
  let read = socket.bytesRead
  let missed = 0
  const looking = setInterval(() => {
    if (socket.bytesRead !== read || incoming.readableLength > 0 || incoming.complete) {
      read = socket.bytesRead
      missed = 0
    } else if (++missed === looks) incoming.destroy(error())
  }, silence / looks)
  looking.unref()
  incoming.once('close', () => clearInterval(looking))
}

/** The same where a proxy stands between, which may be what does not answer. */
function unreachableThrough(proxy: string, url: string, error: unknown): RsmError {
  // Without what stands before the host: a password.
  const { host } = new URL(proxy)
  const refused = /^Proxy response \((\d+)\)/.exec(error instanceof Error ? error.message : '')?.[1]
  const cause = refused === undefined ? error : new Error(`the proxy answered ${refused}`, { cause: error })
  const { message, hint } = unreachable(`${url} through the proxy ${host}`, cause)
  const usual = 'see HTTPS_PROXY and HTTP_PROXY; what NO_PROXY names is reached without it'
  const wanted = 'it wants a password: HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT'
  const trust = hint?.startsWith('trust it') === true ? hint : usual
  return new RsmError('unreachable', message, { hint: refused === '407' ? wanted : trust, cause })
}

/**
 * Requests over node:http, whose start costs a fifth of undici's. Undici comes in only where a proxy variable applies.
 */
export async function openTransport(endpoint: Endpoint, { silence = longestSilence } = {}): Promise<Send> {
  const base = new URL(endpoint.url)
  const { proxyFor } = await import('./proxy.ts')
  const proxy = proxyFor(base, process.env)
  if (proxy !== undefined) {
    if (endpoint.tlsFingerprint !== undefined)
      throw new RsmError('usage', 'a certificate is not pinned through a proxy', {
        hint: 'name the server in NO_PROXY, or trust it with --ca-file',
      })
    const { openProxied } = await import('./proxied.ts')
    const failed = (error: unknown) => unreachableThrough(proxy, endpoint.url, error)
    return openProxied(endpoint, proxy, failed, { answer: answerTimeout, silence })
  }
  const secure = base.protocol === 'https:'
  // An import would read every export of node:http, which on Node 22 and later loads undici: 35 ms of each start.
  const http = process.getBuiltinModule(secure ? 'node:https' : 'node:http')
  // Where one certificate is pinned no authority is asked, and reading them all costs the start of every command.
  const ca =
    secure && endpoint.tlsFingerprint === undefined
      ? (await import('../../disk/trusted-certificates.ts')).trustedCertificates(endpoint.caFile)
      : undefined
  // Idle sockets of an agent are unreferenced: they keep no process alive.
  const agent = new http.Agent({ keepAlive: true })
  if (secure && endpoint.tlsFingerprint !== undefined) {
    const { pin } = await import('./pinning.ts')
    pin(agent as HttpsAgent, endpoint.tlsFingerprint)
  }
  /** The server closed an idle socket just as it was taken again. */
  const stale = new Error('connection lost')
  const prefix = base.pathname.replace(/\/$/, '')

  const attempt = (request: Outgoing): Promise<Incoming> =>
    new Promise((resolve, reject) => {
      const options: RequestOptions & { ca?: string[] } = {
        agent,
        method: request.method,
        hostname: base.hostname.replace(/^\[|\]$/g, ''),
        port: base.port,
        path: prefix + request.path,
        headers: request.headers,
      }
      if (ca !== undefined) options.ca = ca
      if (request.signal !== undefined) options.signal = request.signal
      const outgoing = http.request(options)
      const fail = (code: string) => outgoing.destroy(Object.assign(new Error('no answer in time'), { code }))
      const connecting = setTimeout(fail, connectTimeout, 'EHOSTUNREACH')
      const answering = setTimeout(fail, answerTimeout, 'ETIMEDOUT')
      outgoing.on('socket', (socket) => {
        if (!socket.connecting) clearTimeout(connecting)
        else socket.once('connect', () => clearTimeout(connecting))
      })
      outgoing.on('response', (incoming) => {
        clearTimeout(answering)
        const silent = Object.assign(new Error('no more of the answer'), { code: 'RSM_SILENT' })
        endWhenSilent(incoming, silence, () => unreachable(endpoint.url, silent))
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: incoming })
      })
      outgoing.on('close', () => {
        clearTimeout(connecting)
        clearTimeout(answering)
      })
      outgoing.on('error', (error) => {
        if (request.signal?.aborted === true) reject(error)
        else if (outgoing.reusedSocket && codeOf(error) === 'ECONNRESET') reject(stale)
        else reject(unreachable(endpoint.url, error))
      })
      outgoing.end(request.body)
    })
  return async (request) => {
    // Each of several idle sockets may be stale; the last one is new.
    for (;;) {
      try {
        return await attempt(request)
      } catch (error) {
        if (error !== stale) throw error
        // The server may have read the request after all: only what changes nothing is asked again.
        if (request.method !== 'GET')
          throw unreachable(endpoint.url, Object.assign(new Error('connection lost'), { code: 'ECONNRESET' }))
      }
    }
  }
}
