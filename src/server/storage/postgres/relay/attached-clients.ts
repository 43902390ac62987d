import { httpStatus, type RsmError } from '../../../../core/errors.ts'
import { closeCodes } from '../../../../core/protocol/close-codes.ts'
import type { Attachment, AttachOptions, TerminalClient } from '../../ports/terminal-client.ts'
import { errorOf, sentCaller, type ToClient, type ToSite } from './messages.ts'

/** Milliseconds in which outputs that a socket has taken are told together. */
const writtenDelay = 10

type SendToSite = (message: ToSite, taken?: () => void) => void

/** The clients of this server that are attached to terminals of others. */
export class AttachedClients {
  readonly #clients = new Map<number, AttachedClient>()
  #last = 0

  attach(
    at: { peer: number; site: number; sessionId: string },
    client: TerminalClient,
    { after, watch }: AttachOptions,
    send: SendToSite,
  ): Attachment {
    const id = ++this.#last
    const { peer, site, sessionId } = at
    const attached = new AttachedClient(peer, id, client, watch, send)
    this.#clients.set(id, attached)
    const { ip, acknowledges } = client
    const caller = sentCaller(client.caller)
    send({ t: 'attach', id, site, sessionId, caller, ip, acknowledges, after, watch })
    return attached.attachment()
  }

  heard(peer: number, message: ToClient, body: Buffer): void {
    const client = this.#clients.get(message.id)
    if (client?.peer !== peer) return
    if (message.t === 'done' || message.t === 'refused') this.#clients.delete(message.id)
    client.heard(message, body)
  }

  /** Ends the clients of a lost peer; null: of all peers. */
  lost(peer: number | null): void {
    for (const [id, client] of this.#clients) {
      if (peer !== null && client.peer !== peer) continue
      this.#clients.delete(id)
      client.lost()
    }
  }

  get peers(): number[] {
    return [...this.#clients.values()].map(({ peer }) => peer)
  }
}

/** A client of this server, attached to a terminal of another. */
class AttachedClient {
  readonly peer: number
  readonly #id: number
  readonly #client: TerminalClient
  readonly #send: SendToSite
  readonly #onItsWay = new InFlight((isFull) => this.#hold('way', isFull))
  /** Reasons the client is paused. */
  readonly #holding = new Set<'way' | 'site'>()
  #written = 0
  #isGone = false
  #timer: NodeJS.Timeout | null = null
  /** False for a client that acknowledges outputs: it need not report that its socket took them. */
  readonly #tellsWritten: boolean

  constructor(peer: number, id: number, client: TerminalClient, watch: boolean, send: SendToSite) {
    this.peer = peer
    this.#id = id
    this.#client = client
    this.#send = send
    this.#tellsWritten = watch || !client.acknowledges
  }

  attachment(): Attachment {
    const id = this.#id
    const send = this.#send
    return {
      input: (data, frameId, place) =>
        send({ t: 'input', id, data, frameId, place }, this.#onItsWay.add(data.length + frameId.length)),
      resize: (cols, rows) => send({ t: 'resize', id, cols, rows }, this.#onItsWay.add(0)),
      acknowledge: (sequence) => send({ t: 'acknowledge', id, sequence }, this.#onItsWay.add(0)),
      leave: () => send({ t: 'leave', id }),
      gone: () => {
        if (this.#timer) clearTimeout(this.#timer)
        this.#isGone = true
        send({ t: 'gone', id })
      },
      parted: () => send({ t: 'parted', id }),
    }
  }

  heard(message: ToClient, body: Buffer): void {
    const client = this.#client
    switch (message.t) {
      case 'output':
        return client.output(message.sequence, body, () => this.#took())
      case 'tell':
        return client.tell(message.notice)
      case 'send':
        return client.send(message.type, message.payload)
      case 'close':
        return client.close(message.code, message.reason)
      case 'hold':
      case 'release':
        return this.#hold('site', message.t === 'hold')
      case 'refused':
        return this.#refuse(errorOf(message.error))
      case 'answer':
      case 'failed':
      case 'done':
    }
  }

  /** As a socket of this server does that is attached here. */
  #refuse(error: RsmError): void {
    this.#client.send('ERROR', { code: httpStatus(error), message: error.message, refId: null })
    this.#client.close(closeCodes.overloaded, 'the session cannot be attached')
  }

  /** Closes the client, which comes back with `after`. */
  lost(): void {
    if (!this.#isGone)
      this.#client.close(closeCodes.shuttingDown, 'the way to the server of the session was lost')
  }

  #took(): void {
    this.#written++
    if (!this.#tellsWritten || this.#isGone || this.#timer) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.#send({ t: 'written', id: this.#id, count: this.#written })
    }, writtenDelay)
  }

  #hold(who: 'way' | 'site', isHeld: boolean): void {
    const was = this.#holding.size > 0
    if (isHeld) this.#holding.add(who)
    else this.#holding.delete(who)
    const is = this.#holding.size > 0
    if (is && !was) this.#client.hold()
    else if (was && !is) this.#client.release()
  }
}

/** Bytes in flight to another server above which the sender pauses … */
const high = 64 * 1024
/** … and below which it resumes. */
const low = 16 * 1024
/** Cost of a message beside its content: single characters pile up as well. */
const overhead = 200

/** Bytes in flight of one client or terminal, and whether they are too many. */
class InFlight {
  bytes = 0
  #isFull = false
  readonly #changed: (isFull: boolean) => void

  constructor(changed: (isFull: boolean) => void) {
    this.#changed = changed
  }

  /** Answers what is to be called when `size` bytes have been taken. */
  add(size: number): () => void {
    const all = size + overhead
    this.bytes += all
    this.#look()
    return () => {
      this.bytes -= all
      this.#look()
    }
  }

  #look(): void {
    const isFull = this.bytes > (this.#isFull ? low : high)
    if (isFull === this.#isFull) return
    this.#isFull = isFull
    this.#changed(isFull)
  }
}
