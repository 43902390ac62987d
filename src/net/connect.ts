import type { Agent } from 'node:http'
import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { normalUrl, type Pin, readPin } from '../core/endpoint.ts'
import { firstError } from '../core/errors.ts'
import { bareHost, type Environment, portOf, proxyFor, type Warn } from './proxy.ts'
import { mismatch, trustOptions } from './trust.ts'

/** How long a proxy may take to open a tunnel, and a server behind it to show its certificate, in milliseconds. */
export const connectTimeout = 10_000

/** Milliseconds that a server may take to show the end of its certificate. */
const certificatePatience = 5_000

/** Where a server is and how its certificate is trusted. */
export interface Endpoint {
  readonly url: string
  /** PEM file of certificates that are trusted beside the system's. */
  readonly caFile?: string | undefined
  /** SHA-256 of the one key or certificate that is trusted, instead of any authority. */
  readonly tlsFingerprint?: string | undefined
}

/** How a server is reached, the same for requests and WebSockets. */
export interface Connection {
  /** Of the server, as `normalUrl` has it; a path in it stands before every path. */
  readonly url: string
  readonly base: URL
  readonly proxy: URL | null
  readonly caFile: string | undefined
  /** Keeps connections for the next request. */
  readonly agent: Agent
  /** Opens one for each WebSocket: an idle one may be about to be closed. */
  readonly unshared: Agent
}

/**
 * Connections to a server, through a proxy where the environment names one. `warn` gets settings that are ignored in
 * part. Errors: `usage` for an invalid proxy variable, URL, file of certificates or fingerprint.
 */
export function openConnection(
  {
    url,
    caFile,
    tlsFingerprint,
    environment,
    warn = () => {},
  }: Endpoint & { environment?: Environment | undefined; warn?: Warn | undefined },
  within = connectTimeout,
): Connection {
  const normal = normalUrl(url)
  const base = new URL(normal)
  const proxy = proxyFor(base, environment, warn)
  const pin = tlsFingerprint === undefined ? null : readPin(tlsFingerprint)
  const isSecure = base.protocol === 'https:'
  // An import would read every export of node:http, which on Node 22 and later loads undici: 35 ms of each start.
  const { Agent } = process.getBuiltinModule(isSecure ? 'node:https' : 'node:http')
  const trust = isSecure ? trustOf(pin, caFile, warn) : {}
  const [host, port] = [bareHost(base), portOf(base)]
  const servername = process.getBuiltinModule('node:net').isIP(host) === 0 ? host : ''
  const connect = async () => {
    const socket = proxy === null ? undefined : await tunnel(proxy, host, port, within)
    if (socket !== undefined && !isSecure) return socket
    const through = socket === undefined ? {} : { socket }
    const options = { host, port, servername, ALPNProtocols: ['http/1.1'], ...trust, ...through }
    return secured(options, pin, within)
  }
  const createConnection = (_: unknown, connected: (error: Error | null, socket?: Socket) => void) => {
    connect().then((socket) => connected(null, socket), connected)
  }
  const isPlain = proxy === null && (!isSecure || pin === null)
  const agentOf = (keepAlive: boolean): Agent =>
    // Idle sockets of an agent are unreferenced: they keep no process alive.
    Object.assign(new Agent({ keepAlive, ...trust }), isPlain ? {} : { createConnection })
  return { url: normal, base, proxy, caFile, agent: agentOf(true), unshared: agentOf(false) }
}

function trustOf(pin: Pin | null, caFile: string | undefined, warn: Warn): ConnectionOptions {
  // No authority is asked then, and reading them all costs the start of every command.
  if (pin !== null) return { rejectUnauthorized: false }
  const tls = process.getBuiltinModule('node:tls')
  // Parsed once: some hundred certificates at every connection would cost more than the connection.
  return { secureContext: tls.createSecureContext(trustOptions(caFile, warn)) }
}

/** Nothing is written to the socket before the pin is checked: the token must not reach a stranger. */
function secured(options: ConnectionOptions, pin: Pin | null, within: number): Promise<Socket> {
  const socket = process.getBuiltinModule('node:tls').connect(options)
  const timer = setTimeout(() => socket.destroy(coded('no TLS in time', 'EHOSTUNREACH')), within)
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('close', () => clearTimeout(timer))
    socket.once('secureConnect', () => {
      clearTimeout(timer)
      socket.off('error', reject)
      const wrong = pin === null ? null : mismatch(pin, socket.getPeerX509Certificate())
      if (wrong === null) return resolve(socket)
      socket.destroy()
      return reject(coded(wrong, 'RSM_PIN_MISMATCH'))
    })
  })
}

/** A socket through the proxy's CONNECT (RFC 9110 §9.3.6). */
function tunnel(proxy: URL, host: string, port: number, within: number): Promise<Socket> {
  const target = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const credentials = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
  const { request } = process.getBuiltinModule(proxy.protocol === 'https:' ? 'node:https' : 'node:http')
  const asking = request({
    host: bareHost(proxy),
    port: portOf(proxy),
    method: 'CONNECT',
    path: target,
    agent: false,
    headers: { host: target, ...(proxy.username && { 'proxy-authorization': authorization }) },
  })
  const timer = setTimeout(() => asking.destroy(coded('no answer in time', 'PROXY_SILENT')), within)
  return new Promise((resolve, reject) => {
    asking.once('connect', ({ statusCode }, socket: Socket) => {
      clearTimeout(timer)
      if (statusCode === 200) return resolve(socket)
      socket.destroy()
      return reject(new ProxyError(proxy, coded(`it answered ${statusCode}`, `PROXY_${statusCode}`)))
    })
    asking.once('error', (error) => reject(new ProxyError(proxy, error)))
    asking.once('close', () => clearTimeout(timer))
    asking.end()
  })
}

const coded = (message: string, code: string) => Object.assign(new Error(message), { code })

/**
 * When the server's certificate ends, milliseconds since 1970; null without TLS, through a proxy, or where it does not
 * show one in time. It is looked at only, so that it need not be trusted: nothing is sent.
 */
export async function certificateEnds({ url }: Pick<Endpoint, 'url'>): Promise<number | null> {
  const base = new URL(url)
  if (base.protocol !== 'https:' || proxyFor(base) !== null) return null
  const tls = process.getBuiltinModule('node:tls')
  const host = bareHost(base)
  const servername = process.getBuiltinModule('node:net').isIP(host) === 0 ? host : ''
  return new Promise((resolve) => {
    const socket = tls.connect({
      host,
      port: portOf(base),
      servername,
      rejectUnauthorized: false,
    })
    const settle = (ends: number) => {
      socket.destroy()
      resolve(Number.isNaN(ends) ? null : ends)
    }
    socket.setTimeout(certificatePatience, () => settle(Number.NaN))
    socket.once('error', () => settle(Number.NaN))
    socket.once('secureConnect', () => settle(Date.parse(socket.getPeerCertificate().valid_to)))
  })
}

/** What an error says, for a sentence of its reader's own. */
export const reasonOf = (error: unknown): string =>
  error instanceof ProxyError ? error.message : rootOf(error).message

/** The innermost error, without the wrappers of Node and `ProxyError`. */
export function rootOf(error: unknown): Error & { readonly code?: unknown } {
  const first = firstError(error)
  if (first instanceof ProxyError) return rootOf(first.cause)
  return first instanceof Error ? first : new Error(String(first))
}

/** The proxy cannot be reached, or opens no tunnel; `cause` says why. */
class ProxyError extends Error {
  constructor(proxy: URL, cause: Error) {
    // Without what stands before the host: a password.
    super(`through the proxy ${proxy.host}: ${rootOf(cause).message}`, { cause })
  }
}
