import type { Setting } from '../protocol/http/host-agent.ts'
import type { Limits } from '../tasks/limits.ts'

/** Percent of the disk of its data directory below which an agent is DEGRADED: spools may fail. */
export const leastFreePercent = 3

/**
 * What an agent says of itself to who asks on its own host; times are ISO 8601. How scripts run is known in part until it
 * has registered.
 */
export interface AgentState extends Setting {
  /** Of the rsm that runs as this agent. */
  readonly version: string
  readonly agentId: string
  /** Null until it has registered. */
  readonly hostId: number | null
  readonly hostname: string
  readonly url: string
  readonly onDemand: boolean
  readonly linked: boolean
  /** When it was linked, or lost its link. */
  readonly since: string
  /** Why there is no link; before it has registered, why it has not. */
  readonly reason: string | null
  readonly lastHeartbeatAt: string | null
  /** Why the server does not hear it; null while it does. */
  readonly heartbeatFault: string | null
  /** How far the clock of this host is ahead of the server's; null until the server was heard. */
  readonly clockOffsetSeconds: number | null
  /** What no execution may exceed. */
  readonly limits: Limits
  readonly executions: { readonly running: number; readonly queued: number; readonly unacknowledged: number }
  /** Open sessions; null where none can be opened. */
  readonly terminals: number | null
  /** Why none can be opened. */
  readonly terminalLack: string | null
}
