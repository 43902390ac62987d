import type { BoundedMap } from '../../../../core/bounded-map.ts'
import type { AgentStatus, HostStatus } from '../../../../core/hosts/host.ts'
import type { Measure } from '../../../../core/hosts/host-status.ts'
import type { BeatFacts } from '../../../../core/protocol/http/hosts.ts'
import type { JudgingOptions, KnownHosts } from '../../known-hosts.ts'
import type { Greeting } from '../../ports/presence.ts'
import type { Neighbours } from '../ownership/ownership.ts'

/** State of the newest link of a host. */
export interface LinkState {
  /** Epoch of its claim. */
  readonly epoch: number
  /** Epoch of the server that has it. */
  readonly server: number
  readonly isUp: boolean
  readonly lostAt: number | null
  readonly fault: string | null
}

/** Changed parts of a host's state. Times are the store's, in milliseconds since 1970. */
export interface HostPatch {
  readonly beat: {
    readonly at: number | null
    readonly agentStatus: AgentStatus | null
    readonly uptime: number | null
    readonly says: Partial<BeatFacts>
    readonly clockOffset: number | null
  }
  readonly link: LinkState
  readonly load: {
    /** Time of the newest report; null without one. */
    readonly at: number | null
    readonly warns: readonly string[]
    readonly high: readonly Measure[]
    readonly highSince: Readonly<Record<string, number>>
  }
  readonly marks: { readonly duplicate: boolean; readonly revoked: boolean }
  readonly greeting: Greeting | null
  /** Last known status, for servers that start; a running one judges itself. */
  readonly standing: { readonly status: HostStatus; readonly reason: string | null }
}
export type Part = keyof HostPatch
export const parts = ['beat', 'link', 'load', 'marks', 'greeting', 'standing'] as const satisfies Part[]

/** The hosts of all servers, as one server knows them. */
export interface Fleet {
  readonly options: JudgingOptions
  readonly neighbours: Neighbours
  readonly hosts: KnownHosts
  readonly links: Map<number, LinkState>
  /** Hosts whose last heartbeat came to another server. */
  readonly remote: Set<number>
  /** Recently removed hosts: a server that lags may still write a row of one. Ids are never reused. */
  readonly removed: BoundedMap<number, true>
}

export function patchOf({ hosts, links, options }: Fleet, hostId: number, of: Iterable<Part>) {
  const known = hosts.entries.get(hostId)
  if (!known) return null
  const { lastHeartbeatAt: at, agentStatus, uptime, says, load, high, duplicate, revoked, status } = known
  const offset = options.clock.now() - options.clock.monotonic()
  const highSince = Object.entries(load.highSince).map(([name, since]) => [name, since + offset])
  const all: Partial<HostPatch> = {
    ...(agentStatus !== null && {
      beat: { at, agentStatus, uptime, says, clockOffset: known.clock.offsetSeconds() },
    }),
    ...(links.has(hostId) && { link: links.get(hostId) as LinkState }),
    load: { at: known.metricsAt, warns: load.warns, high, highSince: Object.fromEntries(highSince) },
    marks: { duplicate, revoked },
    greeting: known.greeting,
    standing: { status, reason: known.reason },
  }
  return Object.fromEntries([...of].map((part) => [part, all[part]])) as Partial<HostPatch>
}

/** Sets whether a host is connected: its link is up, at a live server. Returns whether that changed. */
export function updateConnected({ hosts, links, neighbours, options }: Fleet, hostId: number): boolean {
  const known = hosts.entries.get(hostId)
  const link = links.get(hostId)
  if (!known || !link) return false
  const { connected, linkLostAt } = known
  known.connected = link.isUp && (link.server === neighbours.own() || neighbours.others().has(link.server))
  // A dead server did not write when it lost the link.
  if (!known.connected && link.isUp) known.linkLostAt = connected ? options.clock.now() : linkLostAt
  else if (!known.connected) known.linkLostAt = link.lostAt
  return known.connected !== connected || known.linkLostAt !== linkLostAt
}
