import http from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import tls from 'node:tls'
import { RsmError } from '../../core/errors.ts'
import { trustedCertificates } from '../../disk/trusted-certificates.ts'
import { proxyFor, tunnel } from './proxy.ts'

interface ConnectionOptions {
  url: string
  caFile?: string | undefined
  /** SHA-256 of the server's certificate, hex, colons allowed; pinned instead of any authority. */
  tlsFingerprint?: string | undefined
  environment?: Record<string, string | undefined>
}

/** How the server is reached, the same for HTTP and for the link. */
export interface Connection {
  readonly base: URL
  readonly agent: http.Agent
  close(): void
}

type Connected = (error: Error | null, socket?: Socket) => void

function plainHex(fingerprint: string): string {
  return fingerprint
    .replace(/^sha-?256:/i, '')
    .replaceAll(':', '')
    .toLowerCase()
}

/** Nothing is written to the socket before the pin is checked: the token must not reach a stranger. */
function secured(options: tls.ConnectionOptions, pin: string | null, connected: Connected): void {
  const socket = tls.connect(pin ? { ...options, rejectUnauthorized: false } : options)
  const failed = (error: Error) => connected(error)
  socket.once('error', failed)
  socket.once('secureConnect', () => {
    socket.off('error', failed)
    const shown = plainHex(socket.getPeerCertificate().fingerprint256 ?? '')
    if (pin === null || shown === pin) return connected(null, socket)
    socket.destroy()
    return connected(
      new RsmError('unreachable', `the server's certificate is ${shown}, not the pinned ${pin}`),
    )
  })
}

/** Keep-alive connections, through a proxy where HTTPS_PROXY, HTTP_PROXY and NO_PROXY say so (contract §9). */
export function openConnection(options: ConnectionOptions): Connection {
  const base = new URL(options.url)
  if (base.protocol !== 'http:' && base.protocol !== 'https:')
    throw new RsmError('usage', `--url ${options.url} is neither http:// nor https://`)
  const isSecure = base.protocol === 'https:'
  const proxy = proxyFor(base, options.environment ?? process.env)
  const pin = options.tlsFingerprint ? plainHex(options.tlsFingerprint) : null
  // Read once: parsing some hundred certificates at every connection would cost more than the connection.
  const trust =
    isSecure && pin === null ? tls.createSecureContext({ ca: trustedCertificates(options.caFile) }) : null
  // Only the host is needed from here on: a proxy takes the name, and so does the certificate's check.
  const port = Number(base.port) || (isSecure ? 443 : 80)
  const host = base.hostname.replace(/^\[|\]$/g, '')
  const agent = isSecure ? new https.Agent({ keepAlive: true }) : new http.Agent({ keepAlive: true })
  const security = (socket?: Socket): tls.ConnectionOptions => ({
    ...(socket ? { socket } : { host, port }),
    ...(trust ? { secureContext: trust } : {}),
    servername: /^[\d.]+$|:/.test(host) ? '' : host,
    ALPNProtocols: ['http/1.1'],
  })
  const create = (_: unknown, connected: Connected): undefined => {
    if (!proxy) {
      secured(security(), pin, connected)
      return
    }
    tunnel(proxy, host, port).then(
      (socket) => (isSecure ? secured(security(socket), pin, connected) : connected(null, socket)),
      (error: unknown) => connected(error instanceof Error ? error : new Error(String(error))),
    )
  }
  if (isSecure || proxy) Object.assign(agent, { createConnection: create })
  return { base, agent, close: () => agent.destroy() }
}
