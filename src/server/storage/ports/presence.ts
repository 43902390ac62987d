import type { AgentStatus, HostStatus, Metrics } from '../../../core/hosts/host.ts'
import type { BeatFacts, HelloFacts } from '../../../core/protocol/http/hosts.ts'
import type { Age } from '../../../disk/agreed-clock.ts'
import type { LinkClaim } from './cluster.ts'

/** Contents of an agent's HELLO; facts and version are absent in records of older servers. */
export type Greeting = Partial<HelloFacts> & {
  /** Differs from the registered version after an upgrade. */
  readonly agentVersion?: string
}

export interface Standing {
  status: HostStatus
  /** Whether frames sent to it arrive (contract §3 "Reachable"). */
  reachable: boolean
  /** Whether it is shown as NO LINK (contract §3). */
  noLink: boolean
}

/** Current state of a host; volatile, never in the store's journal. */
export interface PresenceView extends Standing {
  statusReason: string | null
  agentStatus: AgentStatus | null
  uptime: number | null
  lastHeartbeatAt: string | null
  connected: boolean
  /** ISO 8601; null while connected, or if it never was. */
  linkLostAt: string | null
  metrics: Metrics | null
  /** Null if its agent has sent no HELLO since it registered. */
  greeting: Greeting | null
  says: Partial<BeatFacts>
  /** Approximate lead of the agent's clock, in seconds; null if unknown. */
  clockOffsetSeconds: number | null
}

export interface Beat {
  readonly status: AgentStatus
  readonly uptime?: number | undefined
  /** ISO 8601 by the agent's clock: never trusted, only compared with the server's for people. */
  readonly timestamp?: string | undefined
  readonly says?: Partial<BeatFacts>
}

/** Reports of agents and links, each to one server. Never waits. */
export interface Heard {
  heartbeat(hostId: number, beat: Beat): void
  metrics(hostId: number, metrics: Metrics): void
  /** Registration counts as a HEALTHY heartbeat (contract §3). */
  registered(hostId: number): void
  /**
   * Whether its agent has a usable link; `linkFault` is the reason if not, where known. `claim` is the claim
   * of that link; no effect if another server knows a newer one.
   */
  connected(hostId: number, connected: boolean, linkFault?: string, claim?: LinkClaim): void
  /** HELLO of the agent that has just linked; null for none. */
  greeted(hostId: number, greeting: Greeting | null): void
  /** Two agents with one identity compete for the link (contract §6). */
  duplicate(hostId: number, duplicate: boolean): void
  /** The agent's token was revoked: the host is OFFLINE with that reason until an agent registers again. */
  revoked(hostId: number): void
  forget(hostId: number): void
}

/** State of hosts by the reports to all servers, including hosts never heard, in the order of the ids. */
export interface Views {
  views(hostIds: readonly number[]): Promise<PresenceView[]>
  standings(hostIds: readonly number[]): Promise<Standing[]>
  /** Ascends with every change of a standing, so that caches can be keyed by it. */
  readonly revision: number
  /**
   * Whether agents may still be reconnecting, as after a server start: a missing link is then not reported.
   */
  readonly isReturning: boolean
}

export interface Presence extends Heard, Views {
  close(): Promise<void>
}

/** Retention of history, in milliseconds (contract §3: 7 days). */
export const keptFor = 7 * 24 * 3600_000

/**
 * Metrics of hosts over time. Less durable than the store: a crash may lose the last seconds (contract §1:
 * heartbeats and metrics are the exception).
 */
export interface History {
  /**
   * Never fails and never waits. Reports from a replayed buffer keep their own time (contract §6). A
   * timestamp more than a minute ahead or older than `keptFor` counts as now, because agents' clocks are not
   * trusted (contract §3).
   */
  append(hostId: number, metrics: Metrics): void
  /** Samples from `from` to `to` (milliseconds since the epoch, both inclusive), in no particular order. */
  read(hostId: number, from: number, to: number): AsyncIterable<Metrics>
  /** Removes all samples of a host; never rejects. */
  forget(hostId: number): Promise<void>
  /** Removes days that ended more than `keptFor` before `now`. */
  sweep(age: Age): Promise<void>
  close(): Promise<void>
}
