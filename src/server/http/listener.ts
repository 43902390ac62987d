import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Log } from '../../disk/log.ts'
import { type Clients, createClients } from '../access/client-address.ts'
import type { Certificate } from '../tls/certificate.ts'
import type { Tls } from '../tls/tls.ts'
import { takePreambles } from './proxy-preamble.ts'

/** Bounds of one client's time and resources, so that slow and greedy ones leave room for the others (S10). */
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

/**
 * At most `limit` open sockets from one address (S10): further ones are closed unread, and the descriptors that they would take
 * stay free for others.
 */
export function limitSockets(
  server: Pick<Server, 'prependListener'>,
  limit: number,
  exempt: (address: string) => boolean,
): void {
  const open = new Map<string, number>()
  const counted = new WeakSet<Socket>()
  server.prependListener('connection', (socket: Socket) => {
    const address = socket.remoteAddress
    // The same socket comes again where an upgrade was declined.
    if (address === undefined || exempt(address) || counted.has(socket)) return
    const before = open.get(address) ?? 0
    if (before >= limit) {
      socket.destroy()
      return
    }
    counted.add(socket)
    open.set(address, before + 1)
    socket.once('close', () => {
      const left = (open.get(address) ?? 1) - 1
      if (left === 0) open.delete(address)
      else open.set(address, left)
    })
  })
}

/**
 * Connections over which nothing has been asked yet, as browsers and HTTP pools open them in advance. Node counts them
 * as busy, so without this a stopping server would wait for them as long as it waits for requests under way.
 */
export function trackUnusedConnections(server: Server): { close(): void } {
  const unused = new Set<Socket>()
  /** The same socket comes again where an upgrade was declined: it has been used, and is watched already. */
  const known = new WeakSet<Socket>()
  /** Sockets whose TLS handshake is not done. */
  const shaking = new Map<string, Socket>()
  const secure = 'setSecureContext' in server
  const track = (socket: Socket) => {
    if (known.has(socket)) return
    known.add(socket)
    unused.add(socket)
    socket.once('close', () => unused.delete(socket))
  }
  server.on('connection', (socket: Socket) => {
    if (!secure) return track(socket)
    const key = peer(socket)
    shaking.set(key, socket)
    socket.once('close', () => shaking.delete(key))
  })
  server.on('secureConnection', (socket: Socket) => {
    shaking.delete(peer(socket))
    track(socket)
  })
  server.on('request', ({ socket }) => unused.delete(socket))
  server.on('upgrade', ({ socket }) => unused.delete(socket))
  return {
    close() {
      for (const socket of [...unused, ...shaking.values()]) socket.destroy()
    },
  }
}

/** Names the peer of a socket: the same for a TCP socket and for the TLS over it. */
const peer = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`

/** The certificate that the listener shows, over renewals. */
export interface Serving {
  /** Of the key that serves now, `sha256//` and base64; null without TLS. */
  readonly fingerprint: string | null
  /** Whether that certificate is signed by itself alone. */
  readonly selfSigned: boolean
  /** Takes up the certificate that is in its files now; keeps the old one, with an error in the log, if that is bad. */
  reload(): Promise<void>
}

/** Calls `renewed` when another certificate is in force. */
export function serveCertificate(
  tls: Tls | null,
  listener: Listener,
  log: Log,
  renewed: () => void,
): Serving {
  let current = tls?.certificate ?? null
  return {
    get fingerprint() {
      return current?.fingerprint ?? null
    },
    get selfSigned() {
      return current?.selfSigned === true
    },
    async reload() {
      if (tls === null) return
      try {
        const certificate = await tls.renewed()
        listener.useCertificate(certificate)
        current = certificate
        renewed()
        const { fingerprint, expiresAt } = certificate
        log.info(
          { fingerprint, expiresAt: new Date(expiresAt).toISOString() },
          'this TLS certificate is in force now',
        )
      } catch (error) {
        // The sentence says which file; a stack would say nothing more.
        const reason = error instanceof Error ? error.message : String(error)
        log.error({ reason }, 'the new TLS certificate is not usable; the old one stays in force')
      }
    },
  }
}
