import { agentStatuses, containments, sandboxModes } from '../../host.ts'
import { limitNames } from '../../task/limits.ts'
import { Nullable, Time } from './common.ts'
import { type Static, type TProperties, type TSchema, Type } from './schema.ts'

export const AgentStatus = Type.Enum([...agentStatuses])
export const Containment = Type.Enum([...containments])

/** What an agent may say of itself: null until it has said it. The example is what a host shows in the API's document. */
const Said = <T extends TSchema>(schema: T, example: Static<T> | null) =>
  Type.Union([schema, Type.Null()], { examples: [example] })

/** How scripts run on a host. */
const setting = Type.Object({
  /** The user that scripts run as where a task names none. */
  runAs: Said(Type.String(), 'deploy'),
  /** Whether that user is root (uid 0). */
  runsAsRoot: Said(Type.Boolean(), false),
  sandbox: Said(Type.Enum([...sandboxModes]), 'none'),
  containment: Said(Containment, 'cgroup'),
  /** The limits of a task that can be enforced there. */
  enforces: Said(Type.Array(Type.Enum([...limitNames])), [...limitNames]),
})
export type Setting = Static<typeof setting>

/** What an agent says with HELLO. */
export const HelloFacts = Type.Object({
  ...setting.properties,
  /** Whether terminals can be opened there. */
  terminal: Said(Type.Boolean(), true),
  /** Why they cannot be opened. */
  terminalLack: Said(Type.String(), null),
})
export type HelloFacts = Static<typeof HelloFacts>

/** What an agent says with each heartbeat. */
export const BeatFacts = Type.Object({
  /** Whether it links only while there is work; older agents never say it. */
  onDemand: Said(Type.Boolean(), false),
  /** Why it has no link although it wants one; null while it is connected. */
  linkFault: Said(Type.String(), null),
  /** Why it is not HEALTHY, in its own words. */
  statusReason: Said(Type.String(), null),
})
export type BeatFacts = Static<typeof BeatFacts>

const exampleOf = (facts: TProperties) =>
  Object.fromEntries(
    Object.entries(facts).map(([name, fact]) => [name, (fact as { examples?: unknown[] }).examples?.[0]]),
  )

export const hostAgent = {
  agentId: 'agent-web1',
  agentVersion: '0.1.0',
  status: 'HEALTHY',
  uptime: 86_400,
  connected: true,
  reachable: true,
  linkLostAt: null,
  registeredAt: '2026-03-01T08:15:00.000Z',
  lastHeartbeatAt: '2026-03-02T09:30:12.480Z',
  ...exampleOf(HelloFacts.properties),
  ...exampleOf(BeatFacts.properties),
  clockOffsetSeconds: 0.2,
}

export const HostAgent = Type.Object(
  {
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
  },
  { examples: [hostAgent] },
)
