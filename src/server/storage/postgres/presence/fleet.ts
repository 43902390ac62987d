import { noteReach } from '../../presence/known-host.ts'
import type { JudgingOptions, KnownHosts } from '../../presence/known-hosts.ts'
import type { Neighbours } from '../ownership/ownership.ts'
import { type LinkSign, type Part, parts, type Signs, signsOf } from './signs.ts'
import type { Flush, KeptHost } from './table.ts'

/** The hosts of all servers, as one server knows them. */
export interface Fleet {
  readonly options: JudgingOptions
  readonly neighbours: Neighbours
  readonly hosts: KnownHosts
  readonly links: HostLinks
  /** Milliseconds since 1970 since when another server listened as this one started; null if none did. */
  readonly listeningSince: number | null
  /** Hosts whose last heartbeat came to another server. */
  readonly elsewhere: Set<number>
  /** When what is known of a host last changed but for its heartbeats, milliseconds since 1970: what was kept before is older. */
  readonly changedAt: Map<number, number>
}

/** Null where nothing is known. */
export function toldOf(
  { hosts, links, options }: Fleet,
  hostId: number,
  of: Iterable<Part>,
): Partial<Signs> | null {
  const known = hosts.entries.get(hostId)
  return known ? signsOf(known, links.get(hostId), of, options.clock) : null
}

export function keptOf(fleet: Fleet, hostId: number): Omit<KeptHost, 'at'> | null {
  const known = fleet.hosts.entries.get(hostId)
  if (!known || known.heardAt === null) return null
  const { status, reason } = known
  const signs = signsOf(known, fleet.links.get(hostId), parts, fleet.options.clock)
  return { hostId, status, reason, signs: signs as Signs }
}

export function reportOf({ hosts }: Fleet, hostId: number): Flush['reports'][number] | null {
  const { metrics, metricsAt: at } = hosts.entries.get(hostId) ?? { metrics: null, metricsAt: 0 }
  return metrics === null ? null : { hostId, at, metrics: JSON.stringify(metrics) }
}

/** Sets whether a host is connected by what is known of its link; false where nothing changes. */
export function connectAnew({ hosts, links, options }: Fleet, hostId: number): boolean {
  const known = hosts.entries.get(hostId)
  const link = links.get(hostId)
  if (!known || !link) return false
  const connected = links.isConnected(hostId)
  // Its server may have died, and could not say when.
  const now = known.connected ? options.clock.now() : known.linkLostAt
  const lostAt = link.isUp ? now : link.lostAt
  const isSame = known.connected === connected && (connected || known.linkLostAt === lostAt)
  known.connected = connected
  if (!connected) known.linkLostAt = lostAt
  return !isSame
}

/** Sets whether a host can be reached by its status as it was kept, without judging it. */
export function reachAsKept({ hosts, options }: Fleet, hostId: number): void {
  noteReach(hosts.entry(hostId), options.clock, options.heartbeatInterval)
}

/** The newest link of each host, wherever its socket is. */
export class HostLinks {
  readonly #links = new Map<number, LinkSign>()
  readonly #neighbours: Neighbours

  constructor(neighbours: Neighbours) {
    this.#neighbours = neighbours
  }

  get(hostId: number): LinkSign | null {
    return this.#links.get(hostId) ?? null
  }

  /** False, and nothing happens, where a newer one is known. */
  take(hostId: number, link: LinkSign): boolean {
    if (link.epoch < (this.#links.get(hostId)?.epoch ?? 0)) return false
    this.#links.set(hostId, link)
    return true
  }

  forget(hostId: number): void {
    this.#links.delete(hostId)
  }

  /** Whether its link is up, at a server that lives. */
  isConnected(hostId: number): boolean {
    const link = this.#links.get(hostId)
    if (!link?.isUp) return false
    return link.server === (this.#neighbours.own() ?? 0) || this.#neighbours.others().has(link.server)
  }

  all(): ReadonlyMap<number, LinkSign> {
    return this.#links
  }
}
