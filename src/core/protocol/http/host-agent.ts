import { agentStatuses, containments, sandboxModes } from '../../hosts/host.ts'
import { limitNames } from '../../tasks/limits.ts'
import { Nullable, Time } from './common.ts'
import { type Static, Type } from './schema.ts'

export const AgentStatus = Type.Enum([...agentStatuses])
export const Containment = Type.Enum([...containments])

/** How scripts run on a host; each is null until its agent has reported it. */
const setting = Type.Object({
  /** Default user for scripts. */
  runAs: Nullable(Type.String()),
  /** Whether that user is root (uid 0). */
  runsAsRoot: Nullable(Type.Boolean()),
  sandbox: Nullable(Type.Enum([...sandboxModes])),
  containment: Nullable(Containment),
  enforces: Nullable(Type.Array(Type.Enum([...limitNames]))),
})
export type Setting = Static<typeof setting>

export const HelloFacts = Type.Object({
  ...setting.properties,
  terminal: Nullable(Type.Boolean()),
  terminalLack: Nullable(Type.String()),
})
export type HelloFacts = Static<typeof HelloFacts>

export const BeatFacts = Type.Object({
  /** Whether it links only while there is work; older agents never report it. */
  onDemand: Nullable(Type.Boolean()),
  /** Why it has no link although it wants one; null while it is connected. */
  linkFault: Nullable(Type.String()),
  /** Why it is not HEALTHY, as reported by the agent. */
  statusReason: Nullable(Type.String()),
})
export type BeatFacts = Static<typeof BeatFacts>

export const HostAgent = Type.Object({
  agentId: Type.String(),
  agentVersion: Type.String(),
  status: Nullable(AgentStatus),
  uptime: Nullable(Type.Number()),
  /** Whether it has a link over which it can receive work: an agent of ours has sent HELLO. */
  connected: Type.Boolean(),
  /** As in `@reachable`: linked; or sends heartbeats, and links on demand or never linked over `rsm.1`. */
  reachable: Type.Boolean(),
  /** When it lost its link; null while it is connected, and if it never was. */
  linkLostAt: Nullable(Time),
  registeredAt: Time,
  lastHeartbeatAt: Nullable(Time),
  ...HelloFacts.properties,
  ...BeatFacts.properties,
  /**
   * Approximate seconds by which its host's clock is ahead of the server's (negative: behind), from its last
   * heartbeats. For people only: no decision uses an agent's clock (contract §3).
   */
  clockOffsetSeconds: Nullable(Type.Number()),
})
