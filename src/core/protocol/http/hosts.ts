import { agentStatuses, authTypes, containments, hostStatuses, sandboxModes } from '../../hosts/host.ts'
import { limitNames } from '../../tasks/limits.ts'
import { longestReason } from '../bounds.ts'
import {
  allNullable,
  Closed,
  Hostname,
  Id,
  Line,
  Nullable,
  named,
  paging,
  type Static,
  TagKey,
  Tags,
  TagValue,
  Time,
  Type,
} from './common.ts'

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

export const HostStatus = Type.Enum([...hostStatuses])
const AuthType = Type.Enum([...authTypes])
const Ip = Type.String({ minLength: 1, maxLength: 45, format: 'ip' })
const Port = Type.Integer({ minimum: 1, maximum: 65535 })
const Secret = Type.String({ minLength: 1, maxLength: 16_384 })
const HostKey = Type.String({
  pattern: '^SHA256:[A-Za-z0-9+/]{43}$',
  description:
    'the fingerprint of an SSH host key as shown by ssh-keygen -l: SHA256: and 43 base64 characters',
})

export const HostCreate = Closed(
  {
    hostname: Hostname,
    ip: Ip,
    sshPort: Type.Optional(Port),
    authType: Type.Optional(AuthType),
    username: Type.Optional(Line(64)),
    password: Type.Optional(Secret),
    privateKey: Type.Optional(Secret),
    hostKey: Type.Optional(HostKey),
    tags: Type.Optional(Tags),
  },
  { examples: [{ hostname: 'web1', ip: '10.0.0.11', tags: { role: 'web' } }] },
)
export type HostCreate = Static<typeof HostCreate>

/** RFC 7396: `null` removes. */
export const HostPatch = Closed(
  {
    hostname: Type.Optional(Hostname),
    ip: Type.Optional(Ip),
    sshPort: Type.Optional(Nullable(Port)),
    authType: Type.Optional(Nullable(AuthType)),
    username: Type.Optional(Nullable(Line(64))),
    password: Type.Optional(Nullable(Secret)),
    privateKey: Type.Optional(Nullable(Secret)),
    hostKey: Type.Optional(Nullable(HostKey)),
    tags: Type.Optional(
      Type.Union([Type.Record(TagKey, Nullable(TagValue), { additionalProperties: false }), Type.Null()], {
        description:
          'tags, as {"role": "web"}: keys of up to 63 letters, digits and _ . / -, starting with a letter or digit; values of up to 256 characters, or null to remove the tag',
      }),
    ),
  },
  { examples: [{ ip: '10.0.0.12', tags: { role: null } }] },
)
export type HostPatch = Static<typeof HostPatch>

export const HostQuery = Closed({
  ...paging,
  ...named,
  search: Type.Optional(Type.String({ maxLength: 253, description: 'Part of the hostname or address' })),
  status: Type.Optional(HostStatus),
  clusterId: Type.Optional(Id),
  tag: Type.Optional(
    Type.Array(Type.String({ pattern: '^[^:]+:', maxLength: 320 }), {
      maxItems: 16,
      description: 'key:value; if repeated, a host must have all of them',
    }),
  ),
  selector: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 65_536,
      description: "Node set syntax, such as 'web[1-20]!@env:test'",
    }),
  ),
  sort: Type.Optional(
    Type.Enum(['hostname'], {
      description: 'By name in natural order (web2 before web10) instead of by id',
    }),
  ),
})
export type HostQuery = Static<typeof HostQuery>

/** Without `force`, a host that takes part in a running task is not removed (409). */
export const HostRemoveQuery = Closed({ force: Type.Optional(Type.Boolean()) })

export const SystemInfo = Type.Object({
  os: Type.String(),
  distribution: Type.Optional(Type.String()),
  kernel: Type.String(),
  arch: Type.String(),
  cpuCores: Type.Number(),
  memoryMB: Type.Number(),
  diskGB: Type.Number(),
  ipAddresses: Type.Array(Type.String()),
})

export const Metrics = Type.Object({
  timestamp: Time,
  cpu: Type.Object({
    usagePercent: Type.Number(),
    loadAvg1m: Type.Number(),
    loadAvg5m: Type.Number(),
    loadAvg15m: Type.Number(),
  }),
  memory: Type.Object({
    totalMB: Type.Number(),
    usedMB: Type.Number(),
    availableMB: Type.Number(),
    usagePercent: Type.Number(),
  }),
  disk: Type.Array(
    Type.Object({
      mountPoint: Type.String({ maxLength: 4096 }),
      totalGB: Type.Number(),
      usedGB: Type.Number(),
      usagePercent: Type.Number(),
      inodesPercent: Type.Optional(Type.Number()),
    }),
  ),
  network: Type.Object({
    rxBytesPerSec: Type.Number(),
    txBytesPerSec: Type.Number(),
    connections: Type.Number(),
  }),
})

export const defaultPoints = 300

/** `from` and `to` default to the last 24 hours; returns at most `points` samples. */
export const HostMetricsQuery = Closed({
  from: Type.Optional(Time),
  to: Type.Optional(Time),
  points: Type.Optional(Type.Integer({ minimum: 1, maximum: 2000, default: defaultPoints })),
})
export type HostMetricsQuery = Static<typeof HostMetricsQuery>

/**
 * Averages of equal parts of the range, ascending, each at the start of its part; parts without reports are left out.
 * `from` is later than requested if history is shorter, and `to` earlier if it is in the future.
 */
export const HostMetrics = Type.Object({
  hostId: Id,
  from: Time,
  to: Time,
  samples: Type.Array(Metrics),
})
export type HostMetrics = Static<typeof HostMetrics>

export const Host = Type.Object({
  id: Id,
  hostname: Type.String(),
  ip: Type.String(),
  sshPort: Type.Integer(),
  authType: AuthType,
  username: Nullable(Type.String()),
  /** SSH host key, pinned when the server first logs in there, or set beforehand. */
  hostKey: Nullable(Type.String()),
  tags: Type.Record(Type.String(), Type.String()),
  status: HostStatus,
  statusReason: Nullable(Type.String()),
  clusterIds: Type.Array(Id),
  systemInfo: Nullable(SystemInfo),
  agent: Nullable(HostAgent),
  metrics: Nullable(Metrics),
  createdAt: Time,
  updatedAt: Time,
})
export type Host = Static<typeof Host>
