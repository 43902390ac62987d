import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Log } from '../../disk/log.ts'
import { type Clients, canonicalAddress, createClients } from '../access/client-address.ts'
import type { Certificate } from '../tls/certificate.ts'
import type { Tls } from '../tls/tls.ts'
import { answerRaw } from './answers.ts'

/** Limits per client, so that slow and greedy clients leave room for others (S10). */
export interface ListenerLimits {
  /** Milliseconds from the first byte of a request to the end of its headers. */
  readonly headers: number
  /** Milliseconds from the first byte of a request to its last. */
  readonly request: number
  /** Milliseconds between checks for late requests. */
  readonly check: number
  /** Milliseconds for the TLS handshake. */
  readonly handshake: number
  /** Milliseconds for which an idle connection stays open. */
  readonly keepAlive: number
  /** Bytes of a request's first line and headers. */
  readonly headerBytes: number
  /** Open sockets per address, other than loopback and trusted proxies. */
  readonly socketsPerAddress: number
}

const usualLimits: ListenerLimits = {
  headers: 10_000,
  request: 60_000,
  check: 2_000,
  handshake: 10_000,
  // Longer than the usual 60 s of proxies, because the client should be the side that closes.
  keepAlive: 75_000,
  headerBytes: 16 * 1024,
  // An agent uses a link and a connection for calls: 4,000 agents behind one NAT.
  socketsPerAddress: 8192,
}

/** A local proxy forwards connections of many clients and limits them itself, like a trusted one. */
const loopback = /^(?:::ffff:)?127\.|^::1$/

export interface Listener {
  /** Creates a server; called several times if a name has several addresses. */
  create(handler: RequestListener): Server
  /** Applies to new connections; open ones keep their certificate. */
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

/** Allows at most `limit` open sockets per address (S10); closes further ones unread, to save descriptors. */
export function limitSockets(
  server: Pick<Server, 'prependListener'>,
  limit: number,
  exempt: (address: string) => boolean,
): void {
  const open = new Map<string, number>()
  const counted = new WeakSet<Socket>()
  server.prependListener('connection', (socket: Socket) => {
    const address = socket.remoteAddress
    // A socket appears again after a declined upgrade.
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
 * Tracks connections without a request, such as browsers and HTTP pools open in advance. Node counts them as busy, so
 * a stopping server would wait for them as for requests in flight.
 */
export function trackUnusedConnections(server: Server): { close(): void } {
  const unused = new Set<Socket>()
  /** Sockets seen before: one appears again after a declined upgrade. */
  const known = new WeakSet<Socket>()
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

/** Key of a socket's peer, the same for a TCP socket and the TLS socket over it. */
const peer = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`

export interface Serving {
  /** Pin of the current certificate's key, `sha256//` and base64; null without TLS. */
  readonly fingerprint: string | null
  readonly selfSigned: boolean
  /** Reloads the certificate from its files; keeps the old one and logs an error if the new one is invalid. */
  reload(): Promise<void>
}

/** Calls `renewed` after each change of the certificate. */
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
        log.info({ fingerprint, expiresAt: new Date(expiresAt).toISOString() }, 'TLS certificate reloaded')
      } catch (error) {
        // The message names the file; a stack would add nothing.
        const reason = error instanceof Error ? error.message : String(error)
        log.error({ reason }, 'the new TLS certificate is unusable; keeping the old one')
      }
    },
  }
}

const proxySignature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
/** Bytes before the addresses of a preamble. */
const preambleHead = 16
/** Limit of addresses and extensions together; HAProxy's own buffer is of this size. */
const longestPreamble = 16 * 1024

/** Start of a connection. `address` is null if the proxy connects on its own behalf, e.g. for a health check. */
type Beginning =
  | 'unclear'
  | 'none'
  | 'malformed'
  | { readonly bytes: number; readonly address: string | null }

/** Reads a preamble of the PROXY protocol, version 2 (haproxy.org, proxy-protocol.txt §2.2). */
function readPreamble(data: Buffer): Beginning {
  const known = data.subarray(0, proxySignature.length)
  if (!known.equals(proxySignature.subarray(0, known.length))) return 'none'
  if (data.length < preambleHead) return 'unclear'
  const [command = 0, family = 0] = data.subarray(proxySignature.length)
  const length = data.readUInt16BE(preambleHead - 2)
  const isProxy = command === 0x21
  if ((!isProxy && command !== 0x20) || length > longestPreamble) return 'malformed'
  const bytes = preambleHead + length
  // Source and destination addresses, then two ports. Other families than TCP over IPv4 or IPv6 carry no client
  // address.
  const addressBytes = isProxy ? { 0x11: 4, 0x21: 16 }[family] : undefined
  if (addressBytes !== undefined && length < 2 * addressBytes + 4) return 'malformed'
  if (data.length < bytes) return 'unclear'
  if (addressBytes === undefined) return { bytes, address: null }
  const source = data.subarray(preambleHead, preambleHead + addressBytes)
  return { bytes, address: canonicalAddress(addressBytes === 4 ? source.join('.') : ipv6Groups(source)) }
}

const ipv6Groups = (address: Buffer) => (address.toString('hex').match(/..../g) ?? []).join(':')

/**
 * Strips the preamble from connections of trusted proxies before HTTP or TLS reads them. A preamble of any other peer
 * is answered with 400. Closes connections whose start is still unclear after `patience` milliseconds.
 */
function takePreambles(server: Server, clients: Clients, patience: number): void {
  const accepting = server.listeners('connection')
  server.removeAllListeners('connection')
  const accept = (socket: Socket) => {
    for (const listener of accepting) Reflect.apply(listener, server, [socket])
  }
  const begun = new WeakSet<Socket>()
  server.on('connection', (socket: Socket) => {
    // A socket appears again after a declined upgrade.
    if (begun.has(socket)) return accept(socket)
    begun.add(socket)
    const late = setTimeout(() => socket.destroy(), patience)
    const broken = () => socket.destroy()
    let data = Buffer.alloc(0)
    const parse = () => {
      const more: Buffer | null = socket.read()
      if (more === null) return
      data = Buffer.concat([data, more])
      const beginning = readPreamble(data)
      if (beginning === 'unclear') return
      clearTimeout(late)
      socket.off('readable', parse).off('end', broken).off('error', broken)
      judge(socket, data, beginning)
    }
    socket.on('readable', parse).on('end', broken).on('error', broken)
    socket.once('close', () => clearTimeout(late))
  })

  function judge(socket: Socket, data: Buffer, beginning: Exclude<Beginning, 'unclear'>): void {
    if (beginning === 'none') socket.unshift(data)
    else if (beginning === 'malformed') return refuse(socket, 'The PROXY preamble is invalid')
    else if (!clients.trusts(socket.remoteAddress))
      return refuse(socket, `${socket.remoteAddress} is not a trusted proxy: its PROXY preamble is refused`)
    else {
      clients.behind(socket, beginning.address ?? socket.remoteAddress ?? '')
      const rest = data.subarray(beginning.bytes)
      if (rest.length > 0) socket.unshift(rest)
    }
    accept(socket)
  }
}

function refuse(socket: Socket, message: string): void {
  socket.on('error', () => undefined)
  answerRaw(socket, 400, message)
  socket.destroySoon()
}
