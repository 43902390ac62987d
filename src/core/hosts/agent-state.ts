import type { Setting } from '../protocol/http/hosts.ts'
import type { Limits } from '../tasks/limits.ts'

/** Percent free on its data directory's disk below which an agent is DEGRADED, because spools may fail. */
export const leastFreePercent = 3

/** An agent's own report; times are ISO 8601. Parts of `Setting` are null until it has registered. */
export interface AgentState extends Setting {
  readonly version: string
  readonly agentId: string
  readonly hostId: number | null
  readonly hostname: string
  readonly url: string
  readonly onDemand: boolean
  readonly linked: boolean
  readonly since: string
  /** Why there is no link; before registration, why it is not registered. */
  readonly reason: string | null
  readonly lastHeartbeatAt: string | null
  /** Why heartbeats fail; null while they succeed. */
  readonly heartbeatFault: string | null
  /** Seconds by which this host's clock is ahead of the server's; null until the server answers. */
  readonly clockOffsetSeconds: number | null
  /** Upper bounds for every execution. */
  readonly limits: Limits
  readonly executions: { readonly running: number; readonly queued: number; readonly unacknowledged: number }
  /** Open sessions; null if terminals are unavailable. */
  readonly terminals: number | null
  /** Why terminals are unavailable. */
  readonly terminalLack: string | null
}
