import type { Log } from '../../../../disk/log.ts'
import type { TerminalSite } from '../../ports/cluster.ts'
import type { NewTerminal } from '../../ports/terminal-client.ts'
import { AttachedClients } from './attached-clients.ts'
import {
  callerOf,
  encodeMessage,
  errorOf,
  MessageReader,
  type Method,
  methods,
  type RelayMessage,
  type SentCaller,
  sentCaller,
  sentError,
  type ToSite,
  wayLost,
} from './messages.ts'
import { ServedClients } from './served-clients.ts'
import type { Wire } from './wire.ts'

type Call = Extract<ToSite, { t: 'call' }>

/** Calls and attachments over one wire, of this server's clients and of this server's sites. */
export class Exchange {
  readonly #sites: ReadonlyMap<number, TerminalSite>
  readonly #log: Log
  readonly #calls = new Calls()
  readonly #attached = new AttachedClients()
  readonly #served = new ServedClients()
  readonly #readers = new Map<number, MessageReader>()
  #wire: Wire | null = null

  /** `sites`: those of this server, by the epoch of its life. */
  constructor(sites: ReadonlyMap<number, TerminalSite>, log: Log) {
    this.#sites = sites
    this.#log = log
  }

  begin(wire: Wire): void {
    this.#wire = wire
  }

  /** Peers with pending calls or attachments. */
  get peers(): number[] {
    return [...new Set([...this.#calls.peers, ...this.#attached.peers, ...this.#served.peers])]
  }

  received(from: number, bytes: Buffer): void {
    let reader = this.#readers.get(from)
    if (!reader) {
      reader = new MessageReader()
      this.#readers.set(from, reader)
    }
    try {
      for (const { message, body } of reader.read(bytes)) this.#hear(from, message, body)
    } catch (error) {
      this.#log.error({ err: error, wire: from }, 'another server sent an invalid relay message')
      this.lost(from)
    }
  }

  /** Null: all that is under way is lost. */
  lost(peer: number | null): void {
    if (peer === null) {
      this.#wire = null
      this.#readers.clear()
    } else {
      this.#readers.delete(peer)
      this.#wire?.forget(peer)
    }
    this.#calls.lost(peer)
    this.#attached.lost(peer)
    this.#served.lost(peer)
  }

  /** All that is under way with this one is over, though its wire lives: it hears that once it goes on. */
  lapsed(peer: number): void {
    this.#calls.lost(peer)
    this.#attached.lost(peer)
    this.#served.part(peer)
  }

  /** The sessions of a server at another wire. */
  site(peer: number, epoch: number): TerminalSite {
    const ask = <T>(method: Method, ...args: unknown[]) => this.#ask(peer, epoch, method, args) as Promise<T>
    return {
      open: ({ record, caller }) => ask('open', { record, caller: sentCaller(caller) }),
      has: (sessionId) => ask('has', sessionId),
      isAttachable: (sessionId) => ask('isAttachable', sessionId),
      expect: (sessionId, after) => ask('expect', sessionId, after),
      attach: (sessionId, client, options) => {
        if (!this.#wire) throw wayLost()
        const at = { peer, site: epoch, sessionId }
        return this.#attached.attach(at, client, options, (message, taken) =>
          this.#send(peer, message, undefined, taken),
        )
      },
      end: (sessionId, reason) => ask('end', sessionId, reason),
      live: (record) => ask('live', record),
      handOver: (sessionId, hostId) => ask('handOver', sessionId, hostId),
    }
  }

  #ask(peer: number, site: number, method: Method, args: readonly unknown[]): Promise<unknown> {
    if (!this.#wire) return Promise.reject(wayLost())
    return this.#calls.ask(peer, method, (id) => this.#send(peer, { t: 'call', id, site, method, args }))
  }

  #send(to: number, message: RelayMessage, body?: Uint8Array, taken?: () => void): void {
    this.#wire?.send(to, encodeMessage(message, body), taken)
  }

  #hear(from: number, message: RelayMessage, body: Buffer): void {
    switch (message.t) {
      case 'answer':
        return this.#calls.answer(from, message.id, message.value)
      case 'failed':
        return this.#calls.fail(from, message.id, errorOf(message.error))
      case 'call':
        return void this.#answer(from, message)
      case 'attach': {
        const site = this.#sites.get(message.site)
        return this.#served.attach(from, site, message, (answer, output, taken) =>
          this.#send(from, answer, output, taken),
        )
      }
      case 'output':
      case 'tell':
      case 'send':
      case 'close':
      case 'hold':
      case 'release':
      case 'done':
      case 'refused':
        return this.#attached.heard(from, message, body)
      case 'input':
      case 'resize':
      case 'acknowledge':
      case 'written':
      case 'leave':
      case 'gone':
      case 'parted':
        return this.#served.heard(from, message)
    }
  }

  async #answer(from: number, call: Call): Promise<void> {
    const { id, method } = call
    try {
      this.#send(from, { t: 'answer', id, value: await this.#carryOut(call) })
    } catch (error) {
      const sent = sentError(error)
      if (sent.code === 'internal') this.#log.error({ err: error, method }, 'a call of another server failed')
      this.#send(from, { t: 'failed', id, error: sent })
    }
  }

  async #carryOut({ site: epoch, method, args }: Call): Promise<unknown> {
    const site = this.#sites.get(epoch)
    if (!site || !methods.includes(method)) throw wayLost()
    if (method === 'open') {
      const { record, caller } = args[0] as { record: NewTerminal['record']; caller: SentCaller }
      return site.open({ record, caller: callerOf(caller) })
    }
    return (site[method] as (...args: readonly unknown[]) => Promise<unknown>)(...args)
  }
}

/** Milliseconds for an answer of a server that lives: an agent may take 15 s to open a terminal. */
const longestCall = 30_000

/** A pending call to another server. */
interface Pending {
  readonly peer: number
  readonly timer: NodeJS.Timeout
  resolve(value: unknown): void
  reject(error: Error): void
}

/** Calls of the sites of other servers. */
class Calls {
  readonly #pending = new Map<number, Pending>()
  #last = 0

  /** Calls `send` with the id of the call. */
  ask(peer: number, method: Method, send: (id: number) => void): Promise<unknown> {
    const id = ++this.#last
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.fail(peer, id, wayLost(`The server of the session did not answer to ${method}`))
      }, longestCall)
      this.#pending.set(id, { peer, timer, resolve, reject })
      send(id)
    })
  }

  answer(peer: number, id: number, value: unknown): void {
    this.#take(peer, id)?.resolve(value)
  }

  fail(peer: number, id: number, error: Error): void {
    this.#take(peer, id)?.reject(error)
  }

  /** Fails the calls to a lost peer; null: to all peers. */
  lost(peer: number | null): void {
    for (const [id, pending] of this.#pending)
      if (peer === null || pending.peer === peer) this.fail(pending.peer, id, wayLost())
  }

  get peers(): number[] {
    return [...this.#pending.values()].map(({ peer }) => peer)
  }

  #take(peer: number, id: number): Pending | undefined {
    const pending = this.#pending.get(id)
    if (pending?.peer !== peer) return undefined
    this.#pending.delete(id)
    clearTimeout(pending.timer)
    return pending
  }
}
