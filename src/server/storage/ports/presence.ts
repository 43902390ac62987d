import type { AgentStatus, HostStatus, Metrics } from '../../../core/hosts/host.ts'
import type { BeatFacts, HelloFacts } from '../../../core/protocol/http/host-agent.ts'
import type { Age } from '../../../disk/agreed-clock.ts'
import type { LinkClaim } from './cluster.ts'

/** What an agent's HELLO says; facts and version are absent where what was kept is from before they were. */
export type Greeting = Partial<HelloFacts> & {
  /** Another than the registered one after an upgrade. */
  readonly agentVersion?: string
}

/** What selectors ask of a host. */
export interface Standing {
  status: HostStatus
  /** Whether what is sent to it gets there (contract §3 "Reachable"). */
  reachable: boolean
  /** Whether it is shown as NO LINK (contract §3). */
  noLink: boolean
}

/** What is known of a host just now; volatile, never in the store's journal. */
export interface PresenceView extends Standing {
  statusReason: string | null
  agentStatus: AgentStatus | null
  uptime: number | null
  lastHeartbeatAt: string | null
  connected: boolean
  /** ISO 8601; null while it is connected, and where it never was. */
  linkLostAt: string | null
  metrics: Metrics | null
  /** Null where its agent has said none since it registered. */
  greeting: Greeting | null
  /** What its last heartbeat says. */
  says: Partial<BeatFacts>
  /** About how far the agent's clock is ahead, in seconds; null: not said. */
  clockOffsetSeconds: number | null
}

/** What a heartbeat says. */
export interface Beat {
  readonly status: AgentStatus
  readonly uptime?: number | undefined
  /** ISO 8601 by the agent's clock: never trusted, only compared with ours for people. */
  readonly timestamp?: string | undefined
  readonly says?: Partial<BeatFacts>
}

/** What agents and their links bring, each to one server. Never waits. */
export interface Heard {
  heartbeat(hostId: number, beat: Beat): void
  metrics(hostId: number, metrics: Metrics): void
  /** Registration counts as a HEALTHY heartbeat (contract §3). */
  registered(hostId: number): void
  /**
   * Whether its agent has a link over which it can be sent something; `linkFault`: why not, where that is known. `claim`: to
   * that link; where another server knows of a newer one, nothing happens.
   */
  connected(hostId: number, connected: boolean, linkFault?: string, claim?: LinkClaim): void
  /** What the agent that has just linked says; null: nothing. */
  greeted(hostId: number, greeting: Greeting | null): void
  /** Two agents with one identity fight for the link (contract §6). */
  duplicate(hostId: number, duplicate: boolean): void
  /** The agent's token was revoked: until an agent registers again the host is OFFLINE and says so. */
  revoked(hostId: number): void
  forget(hostId: number): void
}

/** What follows from all that was heard, whichever server has heard it; of hosts never heard too, in the order of the ids. */
export interface Views {
  views(hostIds: readonly number[]): Promise<PresenceView[]>
  standings(hostIds: readonly number[]): Promise<Standing[]>
  /** Rises whenever a standing changes: what follows from all of them holds as long as this stands. */
  readonly revision: number
  /** Whether agents may be on their way back, as after a start of a server: a missing link is no news then. */
  readonly isReturning: boolean
}

export interface Presence extends Heard, Views {
  close(): Promise<void>
}

/** How long history is kept, in milliseconds (contract §3: 7 days). */
export const keptFor = 7 * 24 * 3600_000

/**
 * Metrics of hosts over time. Not durable as the store is: what came in the last seconds before a crash may be lost
 * (contract §1: heartbeats and metrics are the exception).
 */
export interface History {
  /**
   * Never fails and never waits. Reports of a buffer that is being sent go to their own time (contract §6); a timestamp
   * more than a minute ahead or older than `keptFor` counts as now, as an agent's clock is not trusted (contract §3).
   */
  append(hostId: number, metrics: Metrics): void
  /** Samples from `from` to `to` (milliseconds since the epoch, both included), in no promised order. */
  read(hostId: number, from: number, to: number): AsyncIterable<Metrics>
  /** Removes all of a host; never rejects. */
  forget(hostId: number): Promise<void>
  /** Removes days that ended more than `keptFor` before `now`. */
  sweep(age: Age): Promise<void>
  /** Writes what waits. */
  close(): Promise<void>
}
