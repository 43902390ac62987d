import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import { maxFrameBytes, pingInterval } from '../../core/protocol/bounds.ts'
import { closeCodes, closingWords } from '../../core/protocol/close-codes.ts'
import type { decodeFromServer } from '../../core/protocol/codec.ts'
import {
  type FromAgent,
  type FromServer,
  type Payloads,
  type ScriptOutput,
} from '../../core/protocol/messages.ts'
import { encode, encodeAround, subprotocol } from '../../core/protocol/wire-text.ts'
import { LineBudget } from '../../core/rates.ts'
import { type Connection, reasonOf } from '../../net/connect.ts'
import { retryAfterOf } from '../../net/request.ts'
import { keepAlive, openWebSocket } from '../../net/web-socket.ts'
import type { Clock } from '../clock.ts'
import { jsonText } from '../executions/output/json-text.ts'
import type { Log } from '../log.ts'
import { type AgentBackoff, agentBackoff, quickDelay, revokedDelay } from './backoff.ts'

/** Bytes buffered in the socket above which output stays in its spool. */
const fullAt = 256 * 1024

type AgentMessage = Exclude<FromAgent['type'], 'SCRIPT_OUTPUT'>

interface LinkOptions {
  readonly connection: Connection
  readonly agentId: string
  readonly token: () => string
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

export interface LinkEvents {
  /** The link is up: send HELLO first. */
  opened(): void
  received(message: FromServer): void
  /** The socket has room again after `hasRoom` returned false. */
  drained(): void
  closed(): void
}

/** The agent's WebSocket, reconnecting when it drops. One socket at a time (contract §6). */
export class Link {
  readonly #options: LinkOptions
  #events: LinkEvents = { opened() {}, received() {}, drained() {}, closed() {} }
  readonly #backoff: AgentBackoff
  #socket: WebSocket | null = null
  #isOpen = false
  #isWanted = false
  #cancelRetry: (() => void) | null = null
  #messages = 0
  #isFull = false
  #fault: string | null = null
  readonly #faults = new LineBudget()
  #decode: typeof decodeFromServer | null = null

  constructor(options: LinkOptions) {
    this.#options = options
    this.#backoff = agentBackoff(options.random)
  }

  subscribe(events: LinkEvents): void {
    this.#events = events
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Reason why the link is down; null if it is up or not wanted. */
  get fault(): string | null {
    return this.#isWanted && !this.#isOpen ? (this.#fault ?? 'it has not been opened yet') : null
  }

  /** Connects, and stays connected until `close`. */
  open(): void {
    this.#isWanted = true
    if (this.#socket === null && this.#cancelRetry === null) this.#connect()
  }

  /** Skips the backoff, because the server answers HTTP again. */
  retryNow(): void {
    if (!this.#cancelRetry || !this.#isWanted) return
    this.#cancelRetry()
    this.#cancelRetry = null
    this.#backoff.reset()
    this.#connect()
  }

  /** Resolves after the closing handshake or its timeout; `reason` is sent to the server. */
  async close(reason?: string): Promise<void> {
    this.#isWanted = false
    this.#cancelRetry?.()
    this.#cancelRetry = null
    const socket = this.#socket
    if (socket === null) return
    await new Promise<void>((resolve) => {
      const giveUp = this.#options.clock.after(2_000, () => socket.terminate())
      socket.once('close', () => {
        giveUp()
        resolve()
      })
      if (socket.readyState === WebSocket.CONNECTING) socket.terminate()
      else socket.close(closeCodes.shuttingDown, reason)
    })
  }

  /** Returns the message's id. Drops it without a link: anything important is sent again after HELLO. */
  send<T extends AgentMessage>(type: T, payload: Payloads[T]): string {
    const id = this.#nextId()
    this.#write(encode(type, payload, id, this.#time()))
    return id
  }

  /** Sends output without building a string; `bytes` can be reused on return. */
  sendOutput(about: Omit<ScriptOutput, 'data'>, bytes: Buffer): string {
    const id = this.#nextId()
    const { head, tail } = encodeAround(about, id, this.#time())
    if (this.#socket?.readyState === WebSocket.OPEN) this.#write(jsonText(head, bytes, tail))
    return id
  }

  /** Once false, stays false until `drained`: otherwise a caller in between would suppress that event. */
  hasRoom(): boolean {
    this.#isFull ||= (this.#socket?.bufferedAmount ?? 0) >= fullAt
    return !this.#isFull
  }

  #nextId(): string {
    this.#messages += 1
    return `a${this.#messages}`
  }

  #time(): string {
    return new Date(this.#options.clock.now()).toISOString()
  }

  /** The socket copies bytes when it masks them, so the buffer can be reused. */
  #write(frame: string | Buffer): void {
    if (this.#socket?.readyState === WebSocket.OPEN)
      this.#socket.send(frame, { binary: false }, () => this.#flushed())
  }

  #flushed(): void {
    if (!this.#isFull || (this.#socket?.bufferedAmount ?? 0) > fullAt / 2) return
    this.#isFull = false
    this.#events.drained()
  }

  #connect(): void {
    const { connection, agentId, token, clock } = this.#options
    const socket = openWebSocket(connection, `/ws/agent/${encodeURIComponent(agentId)}`, {
      protocol: subprotocol,
      token: token(),
      maxPayload: 8 * maxFrameBytes,
    })
    this.#socket = socket
    let status: number | undefined
    let retryAfter: number | undefined
    socket.on('unexpected-response', (request, response: IncomingMessage) => {
      status = response.statusCode
      retryAfter = retryAfterOf(response.headers)
      this.#fault = `the server answered ${status}`
      response.resume()
      request.destroy()
      // ws leaves closing a refused handshake to the listener.
      socket.terminate()
    })
    socket.on('error', (error) => {
      // Terminating a refused handshake also raises an error, less specific than the status.
      const reason = reasonOf(error)
      if (status === undefined) this.#fault = reason
      this.#options.log('DEBUG', 'link', { error: reason })
    })
    socket.on('open', () => {
      this.#isOpen = true
      this.#isFull = false
      const lost = () => this.#options.log('WARN', 'the server has been silent for 30 s')
      keepAlive(socket, pingInterval, lost, (ms, run) => clock.after(ms, run))
      this.#options.log('INFO', 'linked to the server')
      this.#events.opened()
    })
    const resetBackoff = () => this.#backoff.reset()
    socket.on('pong', resetBackoff)
    socket.on('ping', resetBackoff)
    socket.on('message', (data: Buffer, isBinary) => {
      resetBackoff()
      if (isBinary) socket.close(closeCodes.protocolFault, 'binary frame')
      else this.#receive(socket, data.toString('utf8'))
    })
    socket.on('close', (code) => this.#closed(code, status, retryAfter))
  }

  /** Loads the validator at the first frame, to save memory in idle agents. */
  #receive(socket: WebSocket, text: string): void {
    if (this.#decode) return this.#handle(socket, this.#decode(text))
    socket.pause()
    import('../../core/protocol/codec.ts').then(
      (codec) => {
        this.#decode = codec.decodeFromServer
        this.#handle(socket, codec.decodeFromServer(text))
        if (this.#socket === socket) socket.resume()
      },
      (error: unknown) => {
        this.#options.log('ERROR', 'could not load the protocol', { error: String(error) })
        socket.terminate()
      },
    )
  }

  #handle(socket: WebSocket, frame: ReturnType<typeof decodeFromServer>): void {
    if (this.#socket !== socket) return
    if (!('fault' in frame)) return this.#events.received(frame)
    const leftOut = this.#faults.take('', this.#options.clock.monotonic())
    if (leftOut !== null)
      this.#options.log('WARN', 'invalid frame from the server', { reason: frame.message, leftOut })
    if (!frame.isError) this.send('ERROR', { code: 400, message: frame.message, refId: frame.refId })
    if (frame.fault === 'protocol') socket.close(closeCodes.protocolFault, 'protocol fault')
  }

  #closed(code: number, status: number | undefined, retryAfter: number | undefined): void {
    const { log, clock, agentId } = this.#options
    const stood = this.#isOpen
    this.#isOpen = false
    this.#socket = null
    if (stood) {
      this.#fault = closingWords(code)
      this.#events.closed()
    }
    if (!this.#isWanted) return
    const isRevoked = code === closeCodes.revoked || status === 401
    const isReplaced = code === closeCodes.replaced || status === 409
    if (isRevoked) log('ERROR', 'the server has revoked the token of this agent', { agentId })
    if (isReplaced) log('WARN', 'another agent with this identity holds the link')
    // One quick retry, only after an open link: otherwise a server that closes at once would be flooded.
    const isQuick = stood && !isReplaced && code !== closeCodes.overloaded
    const { random } = this.#options
    // Ignore Retry-After: the other agent may leave earlier.
    const wait = isReplaced ? undefined : retryAfter
    const delay = isRevoked ? revokedDelay : isQuick ? quickDelay(random) : this.#backoff.next(wait)
    log('WARN', 'no link to the server', { code, status, retryInMs: delay })
    this.#cancelRetry = clock.after(delay, () => {
      this.#cancelRetry = null
      this.#connect()
    })
  }
}
