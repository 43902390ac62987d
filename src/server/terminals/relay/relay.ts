import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { firstError, RsmError } from '../../../core/errors.ts'
import type { Clock } from '../../../disk/clock.ts'
import type { Log } from '../../../disk/log.ts'
import type { Member, Relay, Shared, TerminalSite } from '../../storage/ports/cluster.ts'
import type { Keys } from '../../storage/ports/keys.ts'
import { type Attach, FarClient, NearClient } from './attachment.ts'
import { answerCall, Calls, methods } from './calls.ts'
import {
  Channel,
  dial,
  type Endpoint,
  longestMessage,
  type Message,
  type OpenChannel,
  parse,
} from './channel.ts'

/** Milliseconds. */
const ticketLife = 30_000

interface RelayParts {
  readonly member: Member
  readonly shared: Pick<Shared, 'peers' | 'neighbours' | 'listensAt'>
  readonly keys: Pick<Keys, 'seal' | 'open'>
  readonly clock: Clock
  readonly log: Log
}

/** Proves that a server has the store's key, and says what its WebSocket is for: calls, or one client. */
interface Ticket {
  /** Epoch of the sender. */
  readonly from: number
  readonly until: number
  readonly attach: Attach | null
}

type OpenedPeer = Pick<Member, 'name' | 'epoch'> & Endpoint

/** Contexts of sealed texts; each is valid for one run of one server. */
const endpointOf = (epoch: number) => `servers/${epoch}/endpoint`
const ticketFor = (epoch: number) => `servers/${epoch}/ticket`

/** WebSockets between the servers of a store (docs/inside/adr/0023). */
export class ServerRelay implements Relay {
  readonly #parts: RelayParts
  readonly #sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: longestMessage,
  })
  /** Channels by the epoch of the other server. */
  readonly #channels = new Map<number, Set<Channel>>()
  readonly #calls = new Map<number, Calls>()
  /** Servers that could not be reached, by epoch, with the reason. */
  readonly #faults = new Map<number, { name: string; message: string }>()
  readonly #stopWatching: () => void
  #site: TerminalSite | null = null
  #endpoint: Endpoint | null = null
  #isClosed = false

  constructor(parts: RelayParts) {
    this.#parts = parts
    const { neighbours } = parts.shared
    this.#stopWatching = neighbours.changed(() => {
      const living = neighbours.others()
      const hasEnded = (epoch: number) => !living.has(epoch)
      for (const epoch of [...this.#faults.keys()].filter(hasEnded)) this.#faults.delete(epoch)
      for (const epoch of [...this.#channels.keys()].filter(hasEnded)) {
        for (const channel of this.#channels.get(epoch) ?? []) channel.end()
        this.#channels.delete(epoch)
      }
    })
  }

  serve(_: Member, site: TerminalSite): () => void {
    this.#site = site
    void this.#register()
    return () => {
      this.#site = null
      void this.#register()
    }
  }

  /** Registers the address of this server for other servers. */
  async listensAt(endpoint: Endpoint): Promise<void> {
    this.#endpoint = endpoint
    await this.#register()
  }

  async at({ epoch }: Member): Promise<TerminalSite | null> {
    if (epoch === this.#parts.member.epoch) return this.#site
    const peer = (await this.#peers()).find((one) => one.epoch === epoch)
    return peer ? this.#siteOf(peer) : null
  }

  async having(sessionId: string): Promise<TerminalSite | null> {
    if (await this.#site?.has(sessionId)) return this.#site
    return firstOf((await this.#peers()).map((peer) => this.#hasIt(peer, sessionId)))
  }

  /** Why the server of this name could not be reached; null if it was, or was not called. */
  fault(name: string): string | null {
    return [...this.#faults.values()].find((fault) => fault.name === name)?.message ?? null
  }

  /** Accepts a WebSocket of another server on `relayPath`. Throws if it is not authorized. */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { from, attach } = this.#admit(request.headers.authorization)
    const site = this.#site
    if (!site || this.#isClosed) throw shuttingDown()
    this.#sockets.handleUpgrade(request, socket, head, (ws) => {
      const open = this.#opening(from, ws)
      if (attach) return new FarClient(attach, open).attach(site, attach)
      const { log } = this.#parts
      const channel: Channel = open({
        received: (call) => void answerCall(site, call, { channel, log }),
        closed: () => undefined,
      })
    })
  }

  /** Closes with 1001 clients of other servers here, and those of this server elsewhere. */
  close(): void {
    this.#isClosed = true
    this.#stopWatching()
    this.#sockets.close()
    for (const channels of this.#channels.values()) for (const channel of channels) channel.close()
  }

  async #register(): Promise<void> {
    const { member, shared, keys } = this.#parts
    if (!this.#endpoint) return
    const sealed = this.#site && keys.seal(JSON.stringify(this.#endpoint), endpointOf(member.epoch))
    await shared.listensAt(this.#endpoint.url, sealed)
  }

  async #peers(): Promise<OpenedPeer[]> {
    const { member, shared, keys, log } = this.#parts
    return (await shared.peers()).flatMap(({ name, epoch, endpoint }) => {
      if (epoch === member.epoch) return []
      try {
        return [{ name, epoch, ...(JSON.parse(keys.open(endpoint, endpointOf(epoch))) as Endpoint) }]
      } catch (error) {
        log.warn({ err: error, server: name }, 'the address of another server was not written by it')
        return []
      }
    })
  }

  #siteOf(peer: OpenedPeer): TerminalSite {
    const call = async (method: string, args: unknown[]) => this.#callsOf(peer).call(method, args)
    const called = Object.fromEntries(
      methods.map((method) => [method, (...args: unknown[]) => call(method, args)]),
    ) as unknown as Omit<TerminalSite, 'attach'>
    return {
      ...called,
      attach: (sessionId, client, options) => {
        const { caller, ip, acknowledges } = client
        const attach = { sessionId, caller, ip, acknowledges, ...options }
        return new NearClient(client, options.watch, this.#dialing(peer, attach)).attachment
      },
    }
  }

  #callsOf(peer: OpenedPeer): Calls {
    const { epoch } = peer
    const existing = this.#calls.get(epoch)
    if (existing) return existing
    const unavailable = 'The server of the session cannot be reached just now'
    const calls = new Calls(
      this.#dialing(peer, null),
      () => new RsmError('unavailable', this.#faults.get(epoch)?.message ?? unavailable, { retryAfter: 1 }),
      () => this.#calls.delete(epoch),
    )
    this.#calls.set(epoch, calls)
    return calls
  }

  /** The site of a server that has the session, or null. Rejects if a live server does not answer. */
  async #hasIt(peer: OpenedPeer, sessionId: string): Promise<TerminalSite | null> {
    const site = this.#siteOf(peer)
    try {
      return (await site.has(sessionId)) ? site : null
    } catch (error) {
      if ((await this.#peers()).some(({ epoch }) => epoch === peer.epoch)) throw error
      return null
    }
  }

  #dialing(peer: OpenedPeer, attach: Attach | null): OpenChannel {
    if (this.#isClosed) throw shuttingDown()
    const { member, keys, clock, log } = this.#parts
    const ticket: Ticket = { from: member.epoch, until: clock.now() + ticketLife, attach }
    const ws = dial(peer, keys.seal(JSON.stringify(ticket), ticketFor(peer.epoch)))
    const { name, epoch, url } = peer
    const unreached = (error: Error) => {
      // The server died, or this one aborted the attempt.
      if (this.#isClosed || !this.#channels.has(epoch)) return
      const reason = (firstError(error) as Error).message
      const message = `Server ${member.name} cannot reach server ${name} at ${url}: ${reason}; ${name} may need --advertise with another address`
      if (this.#faults.get(epoch)?.message !== message) log.warn({ server: name }, message)
      this.#faults.set(epoch, { name, message })
    }
    ws.once('error', unreached)
    ws.once('open', () => {
      ws.off('error', unreached)
      this.#faults.delete(epoch)
    })
    return this.#opening(epoch, ws)
  }

  #opening(epoch: number, ws: WebSocket): OpenChannel {
    const channels = this.#channels.get(epoch) ?? new Set()
    this.#channels.set(epoch, channels)
    return (events) => {
      const closed = () => {
        channels.delete(channel)
        events.closed()
      }
      const received = (message: Message) => events.received(message)
      const channel: Channel = new Channel(ws, { received, closed }, this.#parts.log)
      channels.add(channel)
      return channel
    }
  }

  #admit(authorization = ''): Ticket {
    const { member, keys, clock } = this.#parts
    try {
      const ticket = parse(keys.open(authorization.replace('Server ', ''), ticketFor(member.epoch))) as Ticket
      if (ticket.until > clock.now()) return ticket
    } catch {
      // Made for another run of this server, or without the store's key.
    }
    throw new RsmError('unauthenticated', 'Only servers of this store may connect here')
  }
}

/** After `close`, nothing would close a new channel. */
const shuttingDown = () => new RsmError('unavailable', 'The server is shutting down', { retryAfter: 1 })

const notFound = new Error('not there')

/** The first non-null result, without waiting for the others. */
async function firstOf<T>(ones: readonly Promise<T | null>[]): Promise<T | null> {
  const found = ones.map(async (one) => (await one) ?? Promise.reject(notFound))
  try {
    return await Promise.any(found)
  } catch (error) {
    const fault = (error as AggregateError).errors.find((reason) => reason !== notFound)
    if (fault === undefined) return null
    throw fault
  }
}
