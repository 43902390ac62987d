import { randomBytes } from 'node:crypto'
import type { WebSocket } from 'ws'
import { deadAfter, pingInterval } from '../../core/protocol/bounds.ts'
import { closeCodes, stoppedReason } from '../../core/protocol/close-codes.ts'
import { encode, isFault, readFromAgent } from '../../core/protocol/codec.ts'
import type { AgentHello, FromAgent, MessageType, Payloads } from '../../core/protocol/messages.ts'
import type { Clock } from '../clock.ts'
import { isoTime } from '../clock.ts'
import type { AgentLink } from '../engine/agent-link.ts'
import type { Log } from '../log.ts'
import type { Backlog, BacklogShare } from './backlog.ts'
import { closeReason } from './close-reason.ts'

/** A peer that reads nothing while so much waits for it is as good as gone. */
const sendBufferLimit = 64 * 1024 * 1024

/** What the owner of a socket does with it. */
export interface SocketEvents {
  hello(link: AgentSocket, hello: AgentHello): Promise<void>
  /** Any other message; resolves when it is dealt with. */
  message(
    link: AgentSocket,
    message: Exclude<FromAgent, { type: 'AGENT_HELLO' }>,
    /** The text of output as JSON, where it came in one piece. */
    json: Uint8Array | undefined,
  ): Promise<void>
  closed(link: AgentSocket): void
}

/** One WebSocket of an agent: framing, faults, liveness and backpressure. It knows nothing of tasks. */
export class AgentSocket implements AgentLink {
  readonly hostId: number
  readonly agentId: string
  readonly ofOurs: boolean
  hello: AgentHello | null = null
  /** The agent has closed it because it was stopped. */
  isStopped = false
  /** Monotonic milliseconds of the last data frame in either direction or ping of the agent. */
  lastActivity: number
  #lastHeard: number
  #pingedAt = Number.NEGATIVE_INFINITY
  #open = true
  readonly #backlog: BacklogShare
  #nextId = 0
  readonly #idPrefix = randomBytes(6).toString('base64url')
  readonly #socket: WebSocket
  readonly #clock: Clock
  readonly #events: SocketEvents
  readonly #log: Log

  constructor(
    socket: WebSocket,
    identity: { hostId: number; agentId: string; ofOurs: boolean },
    { clock, log, events, backlog }: { clock: Clock; log: Log; events: SocketEvents; backlog: Backlog },
  ) {
    this.#socket = socket
    this.hostId = identity.hostId
    this.agentId = identity.agentId
    this.ofOurs = identity.ofOurs
    this.#clock = clock
    this.#events = events
    this.#log = log
    this.lastActivity = clock.monotonic()
    this.#lastHeard = this.lastActivity
    this.#backlog = backlog.share({
      hold: () => socket.pause(),
      release: () => {
        // What was not read can't have been heard: the peer's time begins anew.
        this.lastActivity = clock.monotonic()
        this.#lastHeard = this.lastActivity
        socket.resume()
      },
    })
    socket.on('message', (data: Buffer, isBinary) => this.#receive(data, isBinary))
    socket.on('ping', () => {
      this.lastActivity = clock.monotonic()
      this.#lastHeard = this.lastActivity
      // Pongs go out by themselves: who pings and never reads would pile them up.
      if (socket.bufferedAmount > sendBufferLimit)
        this.close(closeCodes.overloaded, 'the agent does not read')
    })
    socket.on('pong', () => {
      this.#lastHeard = clock.monotonic()
    })
    socket.on('error', (error) => log.debug({ agentId: this.agentId, err: error }, 'agent link error'))
    socket.on('close', (code, reason) => {
      log.info({ agentId: this.agentId, hostId: this.hostId, code }, 'agent link closed')
      if (!this.#open) return
      this.#open = false
      this.isStopped = code === closeCodes.shuttingDown && reason.toString() === stoppedReason
      events.closed(this)
    })
  }

  /** Frames that are read and not dealt with. */
  get backlogBytes(): number {
    return this.#backlog.bytes
  }

  send<T extends MessageType>(type: T, payload: Payloads[T], written?: () => void): boolean {
    if (!this.#open || this.#socket.readyState !== this.#socket.OPEN) return false
    if (this.#socket.bufferedAmount > sendBufferLimit) {
      this.close(closeCodes.overloaded, 'the agent does not read')
      return false
    }
    const now = this.#clock.now()
    const id = `${this.#idPrefix}${this.#nextId++}`
    this.#socket.send(encode(type, payload, id, isoTime(now)), written && (() => written()))
    this.lastActivity = this.#clock.monotonic()
    return true
  }

  /** From here on frames of this link are void (contract §6). */
  close(code: number, reason: string): void {
    if (!this.#open) return
    this.#open = false
    this.#socket.close(code, closeReason(reason))
    // Not when the peer has answered the close frame: what is sent till then would be lost.
    this.#events.closed(this)
    // A peer that is gone never answers the close frame.
    setTimeout(() => this.#socket.terminate(), 2000).unref()
  }

  /** Called every few seconds: pings, and gives up a peer that does not answer. */
  tick(idleTimeout: number): void {
    const now = this.#clock.monotonic()
    // A server that stood still itself asks again first: what came meanwhile is not read yet.
    const isAsked = now - this.#pingedAt < 1.5 * pingInterval
    this.#pingedAt = now
    if (this.#backlog.isHeld) {
      // It is we who do not read; the ping keeps the peer from giving us up.
      if (this.#open) this.#socket.ping()
    } else if (isAsked && now - this.#lastHeard > deadAfter) this.#socket.terminate()
    else if (now - this.lastActivity > idleTimeout) this.close(closeCodes.idle, 'idle')
    else if (this.#open) this.#socket.ping()
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (!this.#open) return
    this.lastActivity = this.#clock.monotonic()
    this.#lastHeard = this.lastActivity
    if (isBinary) return this.close(closeCodes.protocolFault, 'binary frames are not part of the protocol')
    const { message, json } = readFromAgent(data)
    if (isFault(message)) {
      if (message.fault === 'protocol') return this.close(closeCodes.protocolFault, message.message)
      if (!message.isError) this.send('ERROR', { code: 400, message: message.message, refId: message.refId })
      return
    }
    void this.#handle(message, data.length, json)
  }

  async #handle(message: FromAgent, bytes: number, json?: Uint8Array): Promise<void> {
    this.#backlog.add(bytes)
    try {
      await this.#deliver(message, json)
    } catch (error) {
      this.#log.error(
        { err: error, agentId: this.agentId, type: message.type },
        'a frame could not be handled',
      )
      // The agent repeats over its next link what was not acknowledged; on this one it would wait for ever.
      this.close(closeCodes.overloaded, 'the server can not take this just now')
    } finally {
      this.#backlog.add(-bytes)
    }
  }

  #deliver(message: FromAgent, json?: Uint8Array): Promise<void> {
    if (message.type === 'AGENT_HELLO') {
      if (!this.ofOurs || this.hello) {
        this.send('ERROR', { code: 400, message: 'AGENT_HELLO comes once, over rsm.1', refId: message.id })
        return Promise.resolve()
      }
      this.hello = message.payload
      return this.#events.hello(this, message.payload)
    }
    if (this.ofOurs && !this.hello) {
      this.close(closeCodes.protocolFault, 'AGENT_HELLO has to come first')
      return Promise.resolve()
    }
    return this.#events.message(this, message, json)
  }
}
