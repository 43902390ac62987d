import { setTimeout as delay } from 'node:timers/promises'
import { Mutex } from '../../../../core/mutex.ts'
import type { Log } from '../../../../disk/log.ts'
import type { Member, Relay, TerminalSite } from '../../ports/cluster.ts'
import type { Keys } from '../../ports/keys.ts'
import type { Database } from '../connection/database.ts'
import { unavailable } from '../connection/failure.ts'
import { Exchange } from './exchange.ts'
import { Wire } from './wire.ts'

interface RelayOptions {
  database: Database
  keys: Keys
  log: Log
}

export interface PostgresRelay extends Relay {
  /** Resolves when the others see what has been served and stopped until now. */
  settled(): Promise<void>
  /** Sends what is on its way, and ends all of it. */
  close(): Promise<void>
}

/** Milliseconds between looks whether the others live with whom something is under way. */
const lookEvery = 1_000
const reconnectAfter = 500
/** For a server that may stand still: it is not waited for as long as for one that lives. */
const lapsedPatience = 1_000

/** Terminal frames between the servers of a store, over PostgreSQL (wire.ts): it needs no address of a server, and no open port. */
export function createRelay(options: RelayOptions): PostgresRelay {
  return new NotifyRelay(options)
}

class NotifyRelay implements PostgresRelay {
  readonly #options: RelayOptions
  readonly #members = new Map<number, Member>()
  readonly #sites = new Map<number, TerminalSite>()
  readonly #exchange: Exchange
  #wire: Promise<Wire> | null = null
  readonly #settling = new Mutex()
  #looking: NodeJS.Timeout | null = null
  #reconnecting: NodeJS.Timeout | null = null
  #isClosed = false

  constructor(options: RelayOptions) {
    this.#options = options
    this.#exchange = new Exchange(this.#sites, options.log)
  }

  serve(member: Member, site: TerminalSite): () => void {
    const { epoch } = member
    this.#sites.set(epoch, site)
    this.#members.set(epoch, member)
    this.#settle((wire) => noteSite(wire, member))
    return () => {
      this.#sites.delete(epoch)
      this.#members.delete(epoch)
      this.#settle((wire) => removeSite(wire, member))
    }
  }

  async at({ epoch }: Member): Promise<TerminalSite | null> {
    const own = this.#sites.get(epoch)
    if (own) return own
    const wire = await this.#open()
    const [address] = await this.#asked(findSites(wire, epoch))
    return address && address.wire !== wire.id ? this.#exchange.site(address.wire, epoch) : null
  }

  async having(sessionId: string): Promise<TerminalSite | null> {
    for (const site of this.#sites.values()) if (await site.has(sessionId)) return site
    const wire = await this.#open()
    const others = (await this.#asked(findSites(wire, null))).filter((address) => address.wire !== wire.id)
    return firstOf(others.map((address) => this.#hasIt(wire, address, sessionId)))
  }

  async settled(): Promise<void> {
    await this.#settling.idle()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#reconnecting) clearTimeout(this.#reconnecting)
    await this.#settling.idle()
    const wire = await this.#wire?.catch(() => null)
    await wire?.close()
    this.#lost()
  }

  /** The site, where it has the session. Rejects where a server that lives does not say. */
  async #hasIt(wire: Wire, { wire: peer, epoch, isLapsed }: SiteAddress, sessionId: string) {
    const site = this.#exchange.site(peer, epoch)
    const asked = site.has(sessionId).catch(async (error: unknown) => {
      const [present] = await this.#asked(findSites(wire, epoch))
      if (!present || present.isLapsed) return false
      throw error
    })
    const has = isLapsed ? Promise.race([asked, delay(lapsedPatience, false, { ref: false })]) : asked
    return (await has) ? site : null
  }

  #open(): Promise<Wire> {
    this.#wire ??= this.#connect().catch((error: unknown) => {
      this.#wire = null
      throw unavailable(error)
    })
    return this.#wire
  }

  async #connect(): Promise<Wire> {
    const { database, keys, log } = this.#options
    if (this.#isClosed) throw new Error('the relay is closed')
    const wire = await Wire.open(database, keys, {
      received: (from, bytes) => this.#exchange.received(from, bytes),
      lost: (error) => {
        log.warn({ err: error }, 'the way to terminal sessions of other servers was lost')
        this.#lost()
        this.#reconnectSoon()
      },
    })
    this.#exchange.begin(wire)
    for (const member of this.#members.values()) await noteSite(wire, member)
    this.#looking = setInterval(() => void this.#look(wire), lookEvery).unref()
    return wire
  }

  #lost(): void {
    if (this.#looking) clearInterval(this.#looking)
    this.#wire = null
    this.#exchange.lost(null)
  }

  /** The others are to reach the sessions of this server again. */
  #reconnectSoon(): void {
    if (this.#isClosed || this.#members.size === 0) return
    this.#reconnecting ??= setTimeout(() => {
      this.#reconnecting = null
      this.#open().catch(() => this.#reconnectSoon())
    }, reconnectAfter).unref()
  }

  async #look(wire: Wire): Promise<void> {
    const { peers } = this.#exchange
    if (peers.length === 0) return
    const lost = await findLost(wire, peers).catch(() => [])
    for (const { peer, isDead } of lost)
      if (isDead) this.#exchange.lost(peer)
      else this.#exchange.lapsed(peer)
  }

  /** One after the other; what fails is done when there is a wire again. */
  #settle(work: (wire: Wire) => Promise<void>): void {
    this.#settling
      .run(async () => work(await this.#open()))
      .catch((error: unknown) => {
        this.#options.log.warn({ err: error }, 'other servers cannot be told of terminal sessions just now')
        this.#reconnectSoon()
      })
  }

  async #asked<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      throw unavailable(error)
    }
  }
}

const notFound = new Error('not there')

/** The first that is not null, as soon as it is there. */
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

/** Where the terminal sessions of a server are reached. */
interface SiteAddress {
  readonly epoch: number
  readonly wire: number
  /** Its lease is over, though it has not left: it may stand still. */
  readonly isLapsed: boolean
}

const lapsed = 'exists (select from rsm.servers v where v.epoch = s.epoch and v.lease_until < rsm.now())'

async function noteSite(wire: Wire, { name, epoch }: Member): Promise<void> {
  // In one statement: a site is never gone while it moves to another wire.
  await wire.ask(
    `with dead as (delete from rsm.relay_sites where epoch <> $1 and wire not in (select rsm.relay_wires()))
     insert into rsm.relay_sites(epoch, server, wire) values ($1, $2, $3)
     on conflict (epoch) do update set wire = excluded.wire`,
    [epoch, name, wire.id],
  )
}

async function removeSite(wire: Wire, { epoch }: Member): Promise<void> {
  await wire.ask('delete from rsm.relay_sites where epoch = $1 and wire = $2', [epoch, wire.id])
}

/** Sites whose process lives; `epoch` null: of all servers. */
function findSites(wire: Wire, epoch: number | null): Promise<SiteAddress[]> {
  return wire.ask<SiteAddress>(
    `select s.epoch, s.wire, ${lapsed} as "isLapsed" from rsm.relay_sites s
     where s.wire in (select rsm.relay_wires()) and ($1::bigint is null or s.epoch = $1)`,
    [epoch],
  )
}

/** Which of these wires are dead, or of servers whose lease is over: those may go on. */
function findLost(wire: Wire, peers: readonly number[]): Promise<{ peer: number; isDead: boolean }[]> {
  return wire.ask(
    `select peer, is_dead as "isDead" from unnest($1::bigint[]) as peers(peer)
       cross join lateral (select peer not in (select rsm.relay_wires()) as is_dead) d
     where is_dead or exists (select from rsm.relay_sites s where s.wire = peer and ${lapsed})`,
    [peers],
  )
}
