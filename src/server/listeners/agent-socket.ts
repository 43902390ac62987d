import { randomBytes } from 'node:crypto'
import type { WebSocket } from 'ws'
import { deadAfter, pingInterval } from '../../core/protocol/bounds.ts'
import { closeCodes, stoppedReason } from '../../core/protocol/close-codes.ts'
import { encode, isFault, readFromAgent } from '../../core/protocol/codec.ts'
import type { AgentHello, FromAgent, MessageType, Payloads } from '../../core/protocol/messages.ts'
import { type Clock, isoTime } from '../../disk/clock.ts'
import type { Log } from '../../disk/log.ts'
import type { AgentLink, LinkClaim } from '../storage/ports/cluster.ts'
import { closeReason } from './closing.ts'
import {
  type BacklogShare,
  costOf,
  type EarlyFrames,
  type FrameRate,
  type LinkBounds,
  StrayFrames,
} from './link-bounds.ts'

/** Bytes of unsent data above which a peer counts as dead. */
const sendBufferLimit = 64 * 1024 * 1024
/** The same before its first pong; until then it is sent only pings and pongs. */
const earlySendLimit = 1024 * 1024
/** Messages that need the lease: after it expires, other servers may decide otherwise (contract §12). */
const underLease: ReadonlySet<MessageType> = new Set([
  'EXECUTE_SCRIPT',
  'COPY_FILE',
  'FETCH_FILE',
  'CANCEL_SCRIPT',
  'SCRIPT_ACK',
  'TERMINAL_OPEN',
])

export interface SocketEvents {
  /** The agent answered the ping sent after the claim; frames follow. */
  proven(link: AgentSocket): void
  hello(link: AgentSocket, hello: AgentHello): Promise<void>
  /** Any other message; resolves when it is handled. */
  message(
    link: AgentSocket,
    message: Exclude<FromAgent, { type: 'AGENT_HELLO' }>,
    /** JSON text of the output, if it came in one piece. */
    json: Uint8Array | undefined,
  ): Promise<void>
  strayed(link: AgentSocket): void
  closed(link: AgentSocket): void
}

interface SocketParts {
  clock: Clock
  log: Log
  events: SocketEvents
  bounds: LinkBounds
  /** Whether this server's lease holds; a single server has none to lose. */
  holdsLease?: () => boolean
}

/** One WebSocket of an agent: framing, faults, liveness and backpressure. It knows no tasks. */
export class AgentSocket implements AgentLink {
  readonly hostId: number
  readonly agentId: string
  readonly ofOurs: boolean
  hello: AgentHello | null = null
  /** The agent closed the link because it was stopped. */
  isStopped = false
  /** Monotonic milliseconds of the last data frame in either direction, or the agent's last ping. */
  lastActivity: number
  #lastHeard: number
  #pingedAt = Number.NEGATIVE_INFINITY
  #open = true
  #claim: LinkClaim | null = null
  /** Expected pong, and since when it is awaited. */
  #proof: { data: Buffer; since: number } | null = null
  /** Frames received before that pong. */
  readonly #early: EarlyFrames
  #isProven = false
  readonly #backlog: BacklogShare
  readonly #rate: FrameRate
  /** It sent too fast, so reading is paused. */
  #isResting = false
  readonly #strays: StrayFrames
  #nextId = 0
  readonly #idPrefix = randomBytes(6).toString('base64url')
  readonly #socket: WebSocket
  readonly #clock: Clock
  readonly #events: SocketEvents
  readonly #log: Log
  readonly #holdsLease: () => boolean

  constructor(
    socket: WebSocket,
    identity: { hostId: number; agentId: string; ofOurs: boolean },
    { clock, log, events, bounds, holdsLease = () => true }: SocketParts,
  ) {
    this.#socket = socket
    this.#holdsLease = holdsLease
    this.hostId = identity.hostId
    this.agentId = identity.agentId
    this.ofOurs = identity.ofOurs
    this.#clock = clock
    this.#events = events
    this.#log = log
    this.lastActivity = clock.monotonic()
    this.#lastHeard = this.lastActivity
    this.#backlog = bounds.backlog.share({
      pause: () => socket.pause(),
      resume: () => this.#resume(),
    })
    this.#early = bounds.earlyRoom.open(() =>
      this.close(closeCodes.overloaded, 'too much data before the first pong'),
    )
    this.#rate = bounds.rate
    this.#strays = new StrayFrames(bounds.strays, identity.agentId)
    socket.on('message', (data: Buffer, isBinary) => this.#receive(data, isBinary))
    socket.on('ping', () => {
      this.lastActivity = clock.monotonic()
      this.#lastHeard = this.lastActivity
      this.#spend(1)
      // A peer that pings without reading would pile up pongs.
      if (socket.bufferedAmount > (this.#isProven ? sendBufferLimit : earlySendLimit))
        this.close(closeCodes.overloaded, 'the agent does not read')
    })
    socket.on('pong', (data) => {
      this.#lastHeard = clock.monotonic()
      this.#spend(1)
      if (this.#open && this.#proof?.data.equals(data)) this.#proven()
    })
    socket.on('error', (error) => log.debug({ agentId: this.agentId, err: error }, 'agent link error'))
    socket.on('close', (code, reason) => {
      log.info({ agentId: this.agentId, hostId: this.hostId, code }, 'agent link closed')
      if (!this.#open) return
      this.#open = false
      this.#early.take()
      this.isStopped = code === closeCodes.shuttingDown && reason.toString() === stoppedReason
      events.closed(this)
    })
  }

  get isOpen(): boolean {
    return this.#open && this.#socket.readyState === this.#socket.OPEN
  }

  /** Bytes of frames received but not yet processed. */
  get backlogBytes(): number {
    return this.#early.bytes + this.#backlog.bytes
  }

  get claim(): LinkClaim {
    if (!this.#claim) throw new Error(`The link of host ${this.hostId} has no claim yet`)
    return this.#claim
  }

  /**
   * Pings after the claim, and holds frames until the pong. A link that waited for its claim may be older than
   * the agent's link elsewhere.
   */
  prove(claim: LinkClaim): void {
    this.#claim = claim
    this.#proof = { data: Buffer.from(String(claim.epoch)), since: this.#clock.monotonic() }
    this.#ping()
  }

  send<T extends MessageType>(type: T, payload: Payloads[T], written?: () => void): boolean {
    if (!this.isOpen) return false
    if (this.#socket.bufferedAmount > sendBufferLimit) {
      this.close(closeCodes.overloaded, 'the agent does not read')
      return false
    }
    if (underLease.has(type) && !this.#holdsLease()) {
      // The agent reconnects to a server with a lease, and reports there what it has.
      this.close(closeCodes.overloaded, 'the server cannot reach its store')
      return false
    }
    const now = this.#clock.now()
    const id = `${this.#idPrefix}${this.#nextId++}`
    this.#socket.send(encode(type, payload, id, isoTime(now)), written && (() => written()))
    this.lastActivity = this.#clock.monotonic()
    return true
  }

  stray(about: string | null): void {
    if (!this.#open || this.#strays.take(about, this.#clock.monotonic())) return
    this.#events.strayed(this)
    this.close(closeCodes.protocolFault, 'too many stray frames')
  }

  /** Frames that arrive later are ignored (contract §6). */
  close(code: number, reason: string): void {
    if (!this.#open) return
    this.#open = false
    this.#early.take()
    this.#socket.close(code, closeReason(reason))
    // At once, because frames sent until the peer's close frame would be lost.
    this.#events.closed(this)
    // A dead peer never answers the close frame.
    setTimeout(() => this.#socket.terminate(), 2000).unref()
  }

  /** Called every few seconds: pings, and terminates a peer that does not answer. */
  tick(idleTimeout: number): void {
    const now = this.#clock.monotonic()
    // After a stall, ping once more before declaring the peer dead: its data may be unread.
    const isAsked = now - this.#pingedAt < 1.5 * pingInterval
    this.#pingedAt = now
    if (this.#backlog.isPaused || (this.#isResting && this.#isProven)) {
      // We paused reading; ping so that the agent does not time us out.
      this.#ping()
    } else if (isAsked && now - Math.min(this.#lastHeard, this.#proof?.since ?? now) > deadAfter)
      this.#socket.terminate()
    else if (now - this.lastActivity > idleTimeout) this.close(closeCodes.idle, 'idle')
    else this.#ping()
  }

  /** Carries the pending proof: a peer may answer only the newest of several pings (RFC 6455 §5.5.3). */
  #ping(): void {
    if (this.#open) this.#socket.ping(this.#proof?.data)
  }

  #proven(): void {
    this.#proof = null
    this.#isProven = true
    const early = this.#early.take()
    this.#events.proven(this)
    for (const { data, isBinary } of early) this.#read(data, isBinary)
  }

  /** Resumes reading once neither the backlog nor the frame rate pauses the link. */
  #resume(): void {
    if (this.#backlog.isPaused || this.#isResting) return
    // We were not reading, so restart the idle time.
    this.lastActivity = this.#clock.monotonic()
    this.#lastHeard = this.lastActivity
    this.#socket.resume()
  }

  /** Counts frames; reading a link that sends too fast is paused, so that its agent holds the rest. */
  #spend(frames: number): void {
    const wait = this.#rate.take(this.hostId, frames, this.#clock.monotonic())
    if (wait === 0 || this.#isResting) return
    this.#isResting = true
    this.#socket.pause()
    setTimeout(() => {
      this.#isResting = false
      this.#resume()
    }, wait).unref()
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (!this.#open) return
    this.lastActivity = this.#clock.monotonic()
    this.#lastHeard = this.lastActivity
    if (this.#isProven) this.#read(data, isBinary)
    else this.#early.add({ data, isBinary })
  }

  #read(data: Buffer, isBinary: boolean): void {
    if (!this.#open) return
    if (isBinary) return this.close(closeCodes.protocolFault, 'binary frames are not part of the protocol')
    const { message, json } = readFromAgent(data)
    this.#spend(isFault(message) ? 1 : costOf(message.type))
    if (isFault(message)) {
      if (message.fault === 'protocol') return this.close(closeCodes.protocolFault, message.message)
      if (!message.isError) this.send('ERROR', { code: 400, message: message.message, refId: message.refId })
      return this.stray(null)
    }
    void this.#handle(message, data.length, json)
  }

  /** Counts a message as backlog until it is handled. */
  async #handle(message: FromAgent, bytes: number, json?: Uint8Array): Promise<void> {
    this.#backlog.add(bytes)
    try {
      if (message.type === 'AGENT_HELLO') await this.#greeted(message.id, message.payload)
      else if (this.ofOurs && !this.hello) this.close(closeCodes.protocolFault, 'AGENT_HELLO must come first')
      else await this.#events.message(this, message, json)
    } catch (error) {
      this.#log.error(
        { err: error, agentId: this.agentId, type: message.type },
        'a frame could not be handled',
      )
      // The agent resends unacknowledged messages over its next link only.
      this.close(closeCodes.overloaded, 'the server cannot take this just now')
    } finally {
      this.#backlog.add(-bytes)
    }
  }

  async #greeted(refId: string, hello: AgentHello): Promise<void> {
    if (this.ofOurs && !this.hello) {
      this.hello = hello
      return this.#events.hello(this, hello)
    }
    this.send('ERROR', { code: 400, message: 'AGENT_HELLO must be sent once, over rsm.1', refId })
    this.stray(null)
  }
}
