import type { NetConnectOpts } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { type ClientOptions, WebSocket } from 'ws'
import { deadAfter, pingInterval } from '../../../core/protocol/bounds.ts'
import type { Log } from '../../../disk/log.ts'
import { keyPin } from '../../tls/certificate.ts'

/** Bytes. */
export const longestMessage = 16 * 1024 * 1024
const sequenceBytes = 8
/** Milliseconds for the other side to close as well. */
const closeTime = 2_000

export type Message = readonly [method: string, ...args: unknown[]]

export interface ChannelEvents {
  received(message: Message): void
  /** Called once. */
  closed(): void
}

export type OpenChannel = (events: ChannelEvents) => Channel

/** JSON turns infinity into null: a token or session without an end. */
const revive = (key: string, value: unknown) =>
  value === null && (key === 'expiresAt' || key === 'idleAt') ? Number.POSITIVE_INFINITY : value

export const parse = (text: string): unknown => JSON.parse(text, revive)

/** Messages between two servers over one WebSocket, in order; queued until it is open. */
export class Channel {
  readonly #socket: WebSocket
  readonly #waiting: (() => void)[] = []
  readonly #pinging: NodeJS.Timeout
  #lastReceived = performance.now()

  constructor(socket: WebSocket, events: ChannelEvents, log: Log) {
    this.#socket = socket
    this.#pinging = setInterval(() => this.#ping(), pingInterval).unref()
    socket.on('open', () => {
      for (const send of this.#waiting.splice(0)) send()
    })
    socket.on('message', (data: Buffer, isBinary) => {
      this.#lastReceived = performance.now()
      try {
        events.received(isBinary ? outputOf(data) : (parse(data.toString('utf8')) as Message))
      } catch (error) {
        log.error({ err: error }, 'another server sent an invalid message')
        this.end()
      }
    })
    socket.on('pong', () => {
      this.#lastReceived = performance.now()
    })
    // A close event follows.
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearInterval(this.#pinging)
      events.closed()
    })
  }

  /** Bytes that the connection has not taken. */
  get buffered(): number {
    return this.#socket.bufferedAmount
  }

  /** `taken` is called once the connection has taken it. */
  send(message: Message, taken?: () => void): void {
    this.#send(JSON.stringify(message), taken)
  }

  /** `json` is the output's JSON text in UTF-8, sent as it is. */
  output(sequence: number, json: Uint8Array): void {
    const head = Buffer.allocUnsafe(sequenceBytes)
    head.writeBigInt64BE(BigInt(sequence))
    this.#send(Buffer.concat([head, json]))
  }

  /** Closes the socket once everything is sent; terminates it if the other server does not answer. */
  close(): void {
    this.#socket.close()
    setTimeout(() => this.#socket.terminate(), closeTime).unref()
  }

  end(): void {
    this.#socket.terminate()
  }

  #send(data: string | Buffer, taken?: () => void): void {
    const send = () => this.#socket.send(data, (error) => void (error || taken?.()))
    if (this.#socket.readyState === WebSocket.CONNECTING) this.#waiting.push(send)
    else send()
  }

  #ping(): void {
    if (performance.now() - this.#lastReceived > deadAfter) this.end()
    else if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping()
  }
}

const outputOf = (data: Buffer): Message => [
  'output',
  Number(data.readBigInt64BE(0)),
  data.subarray(sequenceBytes),
]

export const relayPath = '/ws/server'
/** Milliseconds for connection, TLS and the upgrade response. */
const dialTime = 5_000

/** Address of a server for other servers. */
export interface Endpoint {
  readonly url: string
  /** Pin of its certificate's key; null to trust this machine's CAs, or without TLS. */
  readonly pin: string | null
}

/** Opens a WebSocket to another server; `ticket` authenticates it. */
export function dial({ url, pin }: Endpoint, ticket: string): WebSocket {
  return new WebSocket(`${url.replace(/^http/, 'ws')}${relayPath}`, {
    headers: { authorization: `Server ${ticket}` },
    perMessageDeflate: false,
    maxPayload: longestMessage,
    handshakeTimeout: dialTime,
    // The type lacks Node's asynchronous callback.
    ...(pin !== null && {
      createConnection: pinned(pin) as unknown as Required<ClientOptions>['createConnection'],
    }),
  })
}

/** Connects by TLS; sends nothing before the certificate's key is verified against the pin. */
const pinned =
  (pin: string) =>
  (options: NetConnectOpts, connected: (error: Error | null, socket?: TLSSocket) => void): undefined => {
    const socket = connect({ ...options, path: undefined, rejectUnauthorized: false })
    const late = setTimeout(() => socket.destroy(new Error('no TLS in time')), dialTime)
    socket.once('error', connected)
    socket.once('close', () => clearTimeout(late))
    socket.once('secureConnect', () => {
      clearTimeout(late)
      socket.off('error', connected)
      const certificate = socket.getPeerX509Certificate()
      if (certificate !== undefined && keyPin(certificate) === pin) return connected(null, socket)
      socket.destroy()
      connected(new Error('the key of its certificate is not the registered one'))
    })
  }
