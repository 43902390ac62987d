import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https'
import { type Clients, createClients } from '../access/client-address.ts'
import type { Certificate } from '../tls/certificate.ts'
import { takePreambles } from './proxy-preamble.ts'
import { limitSockets } from './socket-limit.ts'

/** How long and how much a client may take, so that slow and greedy ones leave room for the others (S10). */
export interface ListenerLimits {
  /** Milliseconds from the first byte of a request to the end of its headers. */
  readonly headers: number
  /** Milliseconds from the first byte of a request to its last. */
  readonly request: number
  /** Milliseconds between two looks at who is late. */
  readonly check: number
  /** Milliseconds for the TLS handshake. */
  readonly handshake: number
  /** Milliseconds that a connection stays open for the next request. */
  readonly keepAlive: number
  /** Bytes of all headers of a request with its first line. */
  readonly headerBytes: number
  /** Open sockets of one address other than loopback and trusted proxies. */
  readonly socketsPerAddress: number
}

const usualLimits: ListenerLimits = {
  headers: 10_000,
  request: 60_000,
  check: 2_000,
  handshake: 10_000,
  // Longer than proxies keep theirs (60 s as a rule): the one that asks should be the one that closes.
  keepAlive: 75_000,
  headerBytes: 16 * 1024,
  // An agent has a link and a connection for its calls: 4,000 agents behind one NAT.
  socketsPerAddress: 8192,
}

/** A proxy on this machine brings everyone's connections, and limits them itself, as a trusted one does. */
const loopback = /^(?:::ffff:)?127\.|^::1$/

/** The listener of the server: HTTP, or HTTPS where there is a certificate. */
export interface Listener {
  /** Makes a server; there are several where a name has several addresses. */
  create(handler: RequestListener): Server
  /** For connections from now on; those that are open keep theirs. */
  useCertificate(certificate: Certificate): void
}

export function createListener(
  certificate: Certificate | null,
  limits: Partial<ListenerLimits> = {},
  clients: Clients = createClients([]),
): Listener {
  const chosen = { ...usualLimits, ...limits }
  const options = {
    headersTimeout: chosen.headers,
    requestTimeout: chosen.request,
    connectionsCheckingInterval: chosen.check,
    keepAliveTimeout: chosen.keepAlive,
    maxHeaderSize: chosen.headerBytes,
  }
  const secured = new Set<SecureServer>()
  let current = certificate
  const guarded = <S extends Server>(server: S): S => {
    if (clients.hasProxies) takePreambles(server, clients, chosen.headers)
    limitSockets(
      server,
      chosen.socketsPerAddress,
      (address) => loopback.test(address) || clients.trusts(address),
    )
    return server
  }
  const context = ({ key, cert }: Certificate) => ({ key, cert, minVersion: 'TLSv1.2' as const })
  return {
    create(handler) {
      if (current === null) return guarded(createServer(options, handler))
      const server = createSecureServer(
        { ...options, ...context(current), handshakeTimeout: chosen.handshake, ALPNProtocols: ['http/1.1'] },
        handler,
      )
      secured.add(server)
      return guarded(server)
    },
    useCertificate(renewed) {
      current = renewed
      for (const server of secured) server.setSecureContext(context(renewed))
    },
  }
}
