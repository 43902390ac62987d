import { randomBytes } from 'node:crypto'
import type { WebSocket } from 'ws'
import { httpStatus, RsmError } from '../../core/errors.ts'
import { deadAfter, pingInterval } from '../../core/protocol/bounds.ts'
import { closeCodes } from '../../core/protocol/close-codes.ts'
import { decodeFromTerminalClient, isFault } from '../../core/protocol/codec.ts'
import {
  type FromTerminalClient,
  type TerminalMessageType,
  type TerminalNotice,
  type TerminalPayloads,
  terminalSubprotocol,
} from '../../core/terminals/terminal.ts'
import { type Clock, isoTime } from '../../disk/clock.ts'
import type { UserCaller } from '../storage/ports/caller.ts'
import type { Attachment, TerminalClient } from '../storage/ports/terminals.ts'
import { closeReason } from './closing.ts'

/** Bytes of unsent data, e.g. ERRORs to a client that does not read them. */
const sendBufferLimit = 4 * 1024 * 1024
/** Close codes of a client that answered our close frame, or closed first without a code. */
const inOrder: ReadonlySet<number> = new Set([1000, 1005])

const frameEnd = Buffer.from('}}')

interface SocketOptions {
  caller: UserCaller
  ip: string | null
  clock: Clock
  /** Called for frames that only a hostile client sends. */
  refused(message: string): void
  closed(): void
}

/** One WebSocket of a terminal client: framing, faults, liveness. */
export class TerminalSocket implements TerminalClient {
  readonly caller: UserCaller
  readonly ip: string | null
  readonly acknowledges: boolean
  readonly sessionId: string
  readonly #socket: WebSocket
  readonly #clock: Clock
  readonly #options: SocketOptions
  #attachment: Attachment | null = null
  #open = true
  #lastHeard: number
  #pingedAt = Number.NEGATIVE_INFINITY
  #nextId = 0
  readonly #idPrefix = randomBytes(6).toString('base64url')

  constructor(socket: WebSocket, sessionId: string, options: SocketOptions) {
    this.caller = options.caller
    this.ip = options.ip
    this.acknowledges = socket.protocol === terminalSubprotocol
    this.sessionId = sessionId
    this.#socket = socket
    this.#clock = options.clock
    this.#options = options
    this.#lastHeard = options.clock.monotonic()
    const heard = () => {
      this.#lastHeard = this.#clock.monotonic()
    }
    socket.on('ping', () => {
      heard()
      // `ws` sends pongs automatically; a client that pings without reading would pile them up.
      if (socket.bufferedAmount > sendBufferLimit)
        this.close(closeCodes.overloaded, 'the client does not read')
    })
    socket.on('pong', heard)
    socket.on('message', (data: Buffer, isBinary) => this.#receive(data, isBinary))
    socket.on('error', () => undefined)
    socket.on('close', (code) => {
      this.#ended()
      if (inOrder.has(code)) this.#attachment?.parted()
    })
  }

  /** `attach` throws if the session ended meanwhile. */
  start(attach: () => Attachment): void {
    try {
      this.#attachment = attach()
      // A client that was already up to date was closed at once.
      if (!this.#open) this.#attachment.gone()
    } catch (error) {
      const known = error instanceof RsmError
      const message = known ? error.message : 'the session cannot be attached'
      this.send('ERROR', { code: httpStatus(error), message, refId: null })
      this.close(closeCodes.overloaded, 'the session cannot be attached')
      if (!known) throw error
    }
  }

  output(sequence: number, json: Uint8Array, written: () => void): void {
    if (!this.#open) return
    const head = this.#head('TERMINAL_OUTPUT')
    const before = Buffer.from(`${head}{"sessionId":"${this.sessionId}","sequence":${sequence},"data":`)
    const frame = Buffer.concat([before, json, frameEnd])
    // Output refused by a closing socket does not count as written, so that a reconnecting client gets it.
    this.#socket.send(frame, { binary: false }, (error) => {
      if (!error) written()
    })
  }

  /** Shows important notices as output to clients that do not know TERMINAL_NOTICE (contract §7). */
  notify(notice: TerminalNotice): void {
    const { sessionId, kind, message } = notice
    if (this.acknowledges) this.send('TERMINAL_NOTICE', notice)
    else if (kind === 'watched' || kind === 'unwatched' || kind === 'recording-full')
      this.#frame('TERMINAL_OUTPUT', { sessionId, data: `\r\n[rsm: ${message}]\r\n` })
  }

  send<T extends TerminalMessageType>(type: T, payload: TerminalPayloads[T]): void {
    this.#frame(type, payload)
  }

  #frame(type: TerminalMessageType, payload: object): void {
    if (!this.#open) return
    if (this.#socket.bufferedAmount > sendBufferLimit)
      return this.close(closeCodes.overloaded, 'the client does not read')
    this.#socket.send(`${this.#head(type)}${JSON.stringify(payload)}}`)
  }

  #head(type: TerminalMessageType): string {
    const id = `${this.#idPrefix}${this.#nextId++}`
    return `{"type":"${type}","id":"${id}","timestamp":"${isoTime(this.#clock.now())}","payload":`
  }

  close(code: number, reason: string): void {
    if (!this.#open) return
    this.#socket.close(code, closeReason(reason))
    // A dead peer never answers the close frame; a paused socket would not receive it.
    this.#socket.resume()
    setTimeout(() => this.#socket.terminate(), 2000).unref()
    this.#ended()
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#lastHeard = this.#clock.monotonic()
    this.#socket.resume()
  }

  /** Called every few seconds: pings, and terminates a peer that does not answer. */
  tick(): void {
    const now = this.#clock.monotonic()
    // After a stall, ping once more before declaring the peer dead: its data may be unread.
    const isAsked = now - this.#pingedAt < 1.5 * pingInterval
    this.#pingedAt = now
    if (isAsked && !this.#socket.isPaused && now - this.#lastHeard > deadAfter) this.#socket.terminate()
    else this.#socket.ping()
  }

  #ended(): void {
    if (!this.#open) return
    this.#open = false
    this.#options.closed()
    this.#attachment?.gone()
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (!this.#open) return
    this.#lastHeard = this.#clock.monotonic()
    if (isBinary) return this.close(closeCodes.protocolFault, 'binary frames are not part of the protocol')
    const message = decodeFromTerminalClient(data.toString('utf8'))
    if (isFault(message)) {
      if (message.fault === 'protocol') return this.close(closeCodes.protocolFault, message.message)
      if (!message.isError) this.send('ERROR', { code: 400, message: message.message, refId: message.refId })
      return
    }
    if (message.type === 'ERROR') return
    if (message.payload.sessionId !== this.sessionId) {
      this.send('ERROR', { code: 403, message: 'this socket is for another session', refId: message.id })
      return this.#options.refused('a frame for another session')
    }
    if (this.#attachment) this.#deliver(this.#attachment, message)
  }

  #deliver(attachment: Attachment, message: FromTerminalClient): void {
    switch (message.type) {
      case 'TERMINAL_INPUT': {
        const { data, by, position } = message.payload
        const place = by === undefined || position === undefined ? undefined : { by, position }
        return attachment.input(data, message.id, place)
      }
      case 'TERMINAL_RESIZE':
        return attachment.resize(message.payload.cols, message.payload.rows)
      case 'TERMINAL_ACK':
        return attachment.acknowledge(message.payload.sequence)
      case 'TERMINAL_CLOSE':
        return attachment.leave()
      case 'ERROR':
    }
  }
}
