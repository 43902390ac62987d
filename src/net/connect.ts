import type { X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import type { Agent } from 'node:http'
import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { normalUrl, type Pin, readPin, showPin } from '../core/endpoint.ts'
import { firstError } from '../core/errors.ts'
import { blocksOf, readCertificates } from '../disk/certificates.ts'
import { bareHost, type Environment, portOf, proxyFor, type Warn } from './proxy.ts'

/** Milliseconds for a proxy to open a tunnel, and for the TLS handshake of a server behind it. */
export const connectTimeout = 10_000

/** Milliseconds for a server to show its certificate. */
const certificatePatience = 5_000

export interface Endpoint {
  readonly url: string
  /** PEM file of certificates trusted in addition to the system's. */
  readonly caFile?: string | undefined
  /** SHA-256 of the only trusted key or certificate; replaces all authorities. */
  readonly tlsFingerprint?: string | undefined
}

export interface Connection {
  /** URL of the server, as `normalUrl` returns it; its path is a prefix of every request path. */
  readonly url: string
  readonly base: URL
  readonly proxy: URL | null
  readonly caFile: string | undefined
  /** Keeps connections for later requests. */
  readonly agent: Agent
  /** Opens a connection for each WebSocket, because the server may be closing an idle one. */
  readonly unshared: Agent
}

/**
 * Connections to a server, through a proxy if the environment sets one. `warn` receives partly ignored
 * settings. Errors: `usage` for an invalid proxy variable, URL, certificate file or fingerprint.
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
    // Idle sockets of an agent are unreferenced, so they do not keep the process alive.
    Object.assign(new Agent({ keepAlive, ...trust }), isPlain ? {} : { createConnection })
  return { url: normal, base, proxy, caFile, agent: agentOf(true), unshared: agentOf(false) }
}

function trustOf(pin: Pin | null, caFile: string | undefined, warn: Warn): ConnectionOptions {
  // A pin needs no authorities, and reading them all would slow down every command.
  if (pin !== null) return { rejectUnauthorized: false }
  const tls = process.getBuiltinModule('node:tls')
  // Parsed once: a hundred certificates for each connection would cost more than the connection.
  return { secureContext: tls.createSecureContext(trustOptions(caFile, warn)) }
}

/** Checks the pin before anything is written to the socket: the token must not reach an impostor. */
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
 * Expiry of the server's certificate, in milliseconds since 1970; null without TLS, through a proxy, or
 * without a certificate in time. Does not verify it, because nothing is sent.
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

export const reasonOf = (error: unknown): string =>
  error instanceof ProxyError ? error.message : rootOf(error).message

/** The innermost error, without the wrappers of Node and `ProxyError`. */
export function rootOf(error: unknown): Error & { readonly code?: unknown } {
  const first = firstError(error)
  if (first instanceof ProxyError) return rootOf(first.cause)
  return first instanceof Error ? first : new Error(String(first))
}

/** The proxy cannot be reached or refuses the tunnel; see `cause`. */
class ProxyError extends Error {
  constructor(proxy: URL, cause: Error) {
    // Only the host, because the URL may contain a password.
    super(`through the proxy ${proxy.host}: ${rootOf(cause).message}`, { cause })
  }
}

/** System certificates, for versions of Node that do not read them. */
const systemBundles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

/**
 * TLS options that trust Node's certificates, the system's and those of `caFile` (contract §9). Each counts
 * as an authority, as in curl: an intermediate or the server's own certificate is enough. Errors: `usage`,
 * with the file.
 */
export function trustOptions(caFile: string | undefined, warn?: Warn, bundles = systemBundles) {
  const { rootCertificates } = process.getBuiltinModule('node:tls')
  const ca = [...rootCertificates]
  const bundle = bundles.find((path) => existsSync(path))
  // Split, because TLS would stop at the first damaged block.
  if (bundle !== undefined) ca.push(...blocksOf(readFileSync(bundle, 'utf8')))
  if (caFile !== undefined) ca.push(...readCertificates(caFile, warn))
  return { ca, allowPartialTrustChain: true }
}

/** The pin of the certificate's key (SPKI, as curl's --pinnedpubkey), or of the whole certificate. */
function pinOf(certificate: X509Certificate, of: Pin['of']): Pin {
  if (of === 'certificate')
    return { of, sha256: certificate.fingerprint256.replaceAll(':', '').toLowerCase() }
  const { hash } = process.getBuiltinModule('node:crypto')
  const key = certificate.publicKey.export({ type: 'spki', format: 'der' })
  return { of, sha256: hash('sha256', key, 'base64') }
}

/** Pin of the key of a PEM certificate, in the format of `showPin`. */
export function keyPin(pem: Buffer): string {
  const { X509Certificate } = process.getBuiltinModule('node:crypto')
  return showPin(pinOf(new X509Certificate(pem), 'key'))
}

/** Why a server's certificate does not match the pin; null if it does. */
function mismatch(pin: Pin, certificate: X509Certificate | undefined): string | null {
  if (certificate === undefined) return 'it shows no certificate'
  const found = pinOf(certificate, pin.of)
  return found.sha256 === pin.sha256
    ? null
    : `its ${pin.of} is ${showPin(found)}, not the pinned ${showPin(pin)}`
}
