import { agentStatuses, containments, sandboxModes } from '../../hosts/host.ts'
import { limitNames } from '../../tasks/limits.ts'
import { Nullable, Time } from './common.ts'
import { type Static, Type } from './schema.ts'

export const AgentStatus = Type.Enum([...agentStatuses])
export const Containment = Type.Enum([...containments])

/** How scripts run on a host; each is null until its agent has said it. */
const setting = Type.Object({
  /** The user that scripts run as where a task names none. */
  runAs: Nullable(Type.String()),
  /** Whether that user is root (uid 0). */
  runsAsRoot: Nullable(Type.Boolean()),
  sandbox: Nullable(Type.Enum([...sandboxModes])),
  containment: Nullable(Containment),
  /** The limits of a task that can be enforced there. */
  enforces: Nullable(Type.Array(Type.Enum([...limitNames]))),
})
export type Setting = Static<typeof setting>

/** What an agent says with HELLO. */
export const HelloFacts = Type.Object({
  ...setting.properties,
  /** Whether terminals can be opened there. */
  terminal: Nullable(Type.Boolean()),
  /** Why they cannot be opened. */
  terminalLack: Nullable(Type.String()),
})
export type HelloFacts = Static<typeof HelloFacts>

/** What an agent says with each heartbeat. */
export const BeatFacts = Type.Object({
  /** Whether it links only while there is work; older agents never say it. */
  onDemand: Nullable(Type.Boolean()),
  /** Why it has no link although it wants one; null while it is connected. */
  linkFault: Nullable(Type.String()),
  /** Why it is not HEALTHY, in its own words. */
  statusReason: Nullable(Type.String()),
})
export type BeatFacts = Static<typeof BeatFacts>

export const HostAgent = Type.Object({
  agentId: Type.String(),
  agentVersion: Type.String(),
  status: Nullable(AgentStatus),
  uptime: Nullable(Type.Number()),
  /** Whether it has a link over which it can be sent something: an agent of ours has said HELLO. */
  connected: Type.Boolean(),
  /**
   * Whether a script would get there, as `@reachable` selects it: it is linked, or heard and either links on demand or
   * has never linked over `rsm.1`.
   */
  reachable: Type.Boolean(),
  /** Since when it has no link; null while it is connected, and where it never was. */
  linkLostAt: Nullable(Time),
  registeredAt: Time,
  lastHeartbeatAt: Nullable(Time),
  ...HelloFacts.properties,
  ...BeatFacts.properties,
  /**
   * About how many seconds its host's clock is ahead of the server's (behind: negative), by its last heartbeats. For
   * people: nothing is decided by an agent's clock (contract §3).
   */
  clockOffsetSeconds: Nullable(Type.Number()),
})
