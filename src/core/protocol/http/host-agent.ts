import { agentStatuses, containments, sandboxModes } from '../../hosts/host.ts'
import { limitNames } from '../../tasks/limits.ts'
import { longestReason } from '../bounds.ts'
import { allNullable, Nullable, type Static, Time, Type } from './common.ts'

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

/** Facts of each heartbeat. An agent omits those that it does not know, and a host shows them as null. */
export const beatFacts = {
  /** Whether it links only while there is work; older agents never report it. */
  onDemand: Type.Boolean(),
  /** Why it has no link although it wants one; null while it is connected. */
  linkFault: Type.String({ maxLength: longestReason }),
}

export const BeatFacts = Type.Object({
  ...allNullable(beatFacts),
  /** Why it is not HEALTHY, as reported by the agent. */
  statusReason: Nullable(Type.String()),
})
export type BeatFacts = Static<typeof BeatFacts>
/** As an agent gives them; null if it does not know one. */
export type OwnFacts = Omit<BeatFacts, 'statusReason'>

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
