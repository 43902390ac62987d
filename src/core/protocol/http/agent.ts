import { longestReason } from '../bounds.ts'
import { allOptional, Closed, Hostname, Id, Line, Nullable, type Static, Tags, Time, Type } from './common.ts'
import { beatFacts, Metrics } from './hosts.ts'

export const EnrollmentCreate = Closed(
  {
    name: Type.Optional(Line(128)),
    maxUses: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
    expiresInHours: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 8784 })),
    tags: Type.Optional(Tags),
    clusterId: Type.Optional(Id),
    hostId: Type.Optional(Id),
    url: Type.Optional(Line(2048)),
    fingerprint: Type.Optional(Line(128)),
  },
  { examples: [{ name: 'web servers', maxUses: 20, expiresInHours: 24, tags: { role: 'web' } }] },
)
export type EnrollmentCreate = Static<typeof EnrollmentCreate>

export const Enrollment = Type.Object({
  id: Id,
  name: Nullable(Type.String()),
  maxUses: Type.Integer(),
  uses: Type.Integer(),
  tags: Type.Record(Type.String(), Type.String()),
  clusterId: Nullable(Id),
  hostId: Nullable(Id),
  createdBy: Type.String(),
  createdAt: Time,
  expiresAt: Time,
})
export type Enrollment = Static<typeof Enrollment>

const OpenEnrollment = Type.Object({
  id: Id,
  name: Nullable(Type.String()),
  maxUses: Type.Integer(),
  uses: Type.Integer(),
  expiresAt: Time,
})
export type OpenEnrollment = Static<typeof OpenEnrollment>

/**
 * `data` of operations that revoke a host's agent. Only a newer enrollment token admits the agent again. A holder of
 * one of `openEnrollments` can still enroll a machine as a new host.
 */
export const Parted = Type.Object({ id: Id, openEnrollments: Type.Array(OpenEnrollment) })
export type Parted = Static<typeof Parted>

/**
 * `token` is shown only once: here, in `join` (everything that a host needs), and in `line`, to paste on the host
 * (contract §10). Both are null while no URL is known.
 */
export const EnrollmentCreated = Type.Object({
  ...Enrollment.properties,
  token: Type.String(),
  join: Nullable(Type.String()),
  line: Nullable(Type.String()),
})
export type EnrollmentCreated = Static<typeof EnrollmentCreated>

/** Permanent id of an agent; appears in URLs and file names. */
export const AgentId = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]*$',
  format: 'not-blank',
})

/** Text reported by an agent: unprintable characters are replaced (contract §1), a longer text is refused. */
const Fact = Type.String({ maxLength: 256 })

const facts = {
  ipAddresses: Type.Optional(Type.Array(Type.String({ maxLength: 64 }), { maxItems: 256 })),
  os: Type.Optional(Fact),
  /** PRETTY_NAME of os-release(5). */
  distribution: Type.Optional(Fact),
  kernel: Type.Optional(Fact),
  arch: Type.Optional(Fact),
  cpuCores: Type.Optional(Type.Number({ minimum: 0 })),
  memoryMB: Type.Optional(Type.Number({ minimum: 0 })),
  diskGB: Type.Optional(Type.Number({ minimum: 0 })),
}
const SystemFacts = Type.Object(facts)
export type SystemFacts = Static<typeof SystemFacts>

/** Bodies from agents ignore unknown fields, so that older servers accept newer agents (contract §1). */
export const RegisterRequest = Type.Object(
  {
    agentId: AgentId,
    hostname: Hostname,
    ...facts,
    agentVersion: Type.Optional(Fact),
  },
  {
    examples: [{ agentId: 'agent-web1', hostname: 'web1', os: 'linux', arch: 'x64', agentVersion: '0.1.0' }],
  },
)
export type RegisterRequest = Static<typeof RegisterRequest>

/** `serverKey`: Ed25519 public key, base64, that verifies executions; `keyId` identifies it (contract §6). */
export const RegisterResult = Type.Object({
  hostId: Id,
  token: Type.String(),
  heartbeatInterval: Type.Number(),
  metricsInterval: Type.Number(),
  serverKey: Type.String(),
  keyId: Type.String(),
  serverTime: Time,
})
export type RegisterResult = Static<typeof RegisterResult>

/** Position in the server's store (docs/reference/protocol.md, P49); opaque to agents. */
const Mark = Type.Object({
  run: Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' }),
  sequence: Type.Integer({ minimum: 0 }),
  mac: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' })),
})

/**
 * `uptime` in seconds; `reason`: why the status is not HEALTHY; `mark`: the newest that a server gave it; `facts`:
 * after each link, and once an hour. Of the optional ones, base-protocol agents send only `uptime`.
 */
export const HeartbeatRequest = Type.Object(
  {
    agentId: AgentId,
    timestamp: Type.Optional(Type.String({ maxLength: 64 })),
    /** HEALTHY, DEGRADED or UNHEALTHY; any other comes from a newer agent and counts as DEGRADED. */
    status: Type.String({ pattern: '^[A-Z_]{1,64}$' }),
    uptime: Type.Optional(Type.Number({ minimum: 0 })),
    reason: Type.Optional(Type.String({ maxLength: longestReason })),
    ...allOptional(beatFacts),
    mark: Type.Optional(Mark),
    facts: Type.Optional(SystemFacts),
  },
  {
    examples: [
      {
        agentId: 'agent-web1',
        timestamp: '2026-03-02T09:30:12.480Z',
        status: 'HEALTHY',
        uptime: 86_400,
        onDemand: false,
        mark: { run: 'q3Zr0dBv6aXn1w', sequence: 4711, mac: '8sRIYRWnBjEb7DYHYTjkqOAHBVZjhq3ijqkUHKbFBSY' },
      },
    ],
  },
)
export type HeartbeatRequest = Static<typeof HeartbeatRequest>

export const MetricsRequest = Type.Object(
  { agentId: AgentId, ...Metrics.properties },
  {
    examples: [
      {
        agentId: 'agent-web1',
        timestamp: '2026-03-02T09:30:00.000Z',
        cpu: { usagePercent: 12.5, loadAvg1m: 0.42, loadAvg5m: 0.38, loadAvg15m: 0.31 },
        memory: { totalMB: 7972, usedMB: 3120, availableMB: 4852, usagePercent: 39.1 },
        disk: [{ mountPoint: '/', totalGB: 98.3, usedGB: 41.7, usagePercent: 42.4 }],
        network: { rxBytesPerSec: 18_240, txBytesPerSec: 9120, connections: 37 },
      },
    ],
  },
)
export type MetricsRequest = Static<typeof MetricsRequest>

/** `pendingTasks` is a count here (contract §6). Without `mark` the agent keeps its current one. */
export const AgentAck = Type.Object({
  serverTime: Time,
  configVersion: Type.Integer(),
  pendingTasks: Type.Integer(),
  mark: Type.Optional(Mark),
})
export type AgentAck = Static<typeof AgentAck>

export const AgentConfigQuery = Type.Object({ agentId: AgentId }, { additionalProperties: false })
export const logLevels = ['DEBUG', 'INFO', 'WARN', 'ERROR'] as const
export const AgentConfig = Type.Object({
  heartbeatInterval: Type.Number(),
  metricsInterval: Type.Number(),
  logLevel: Type.Enum([...logLevels]),
  configVersion: Type.Integer(),
  pendingTasks: Type.Array(Type.Object({ taskId: Type.String(), type: Type.Literal('EXECUTE_SCRIPT') })),
})
export type AgentConfig = Static<typeof AgentConfig>
