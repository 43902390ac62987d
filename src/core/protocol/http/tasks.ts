import { versionPattern } from '../../release.ts'
import { defaultInterval, gateStatuses, longestInterval, mostRetries, phases } from '../../tasks/gates.ts'
import type * as core from '../../tasks/task.ts'
import { resultStatuses, strategies, taskStatuses, taskTypes } from '../../tasks/task.ts'
import { largestPage } from '../bounds.ts'
import { HostIds, Target } from './clusters.ts'
import { Closed, Id, Line, Nullable, OpaqueId, paging, type Static, Time, Type } from './common.ts'
import { Copy, Fetch, LimitRate, Stdin, TaskCopy, TaskFetch, TaskStdin } from './files.ts'
import { Containment } from './hosts.ts'
import { Content, ScriptType, Timeout } from './scripts.ts'

export const Strategy = Type.Enum([...strategies])
export const TaskStatus = Type.Enum([...taskStatuses])
export const TaskType = Type.Enum([...taskTypes])
export const ResultStatus = Type.Enum([...resultStatuses])

const Percent = Type.String({ pattern: '^(100|[0-9]{1,2})%$' })
const SomePercent = Type.String({ pattern: '^(100|0?[1-9]|[1-9][0-9])%$' })
const Count = Type.Integer({ minimum: 1, maximum: 100_000 })
const BatchStep = Type.Union([Count, SomePercent])
export const BatchSize = Type.Union(
  [Count, SomePercent, Type.Array(BatchStep, { minItems: 1, maxItems: 100 })],
  {
    description:
      'a whole number from 1 to 100000, a percentage from "1%" to "100%", or a list of 1 to 100 of these, like [1, "10%", "50%"]',
  },
)
export const MaxFailures = Type.Union([Type.Integer({ minimum: 0, maximum: 100_000 }), Percent], {
  description: 'a whole number from 0 to 100000, or a percentage from "0%" to "100%"',
})

/**
 * Names match `[A-Za-z_][A-Za-z0-9_]*`; the service refuses names that change how programs load (contract §4), by the
 * format `unreserved`. It also limits bytes, as the operating system does for the script's process.
 */
export const Params = Type.Record(
  Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' }),
  Type.String({ maxLength: 131_072, pattern: '^[^\\u0000]*$' }),
  { additionalProperties: false, maxProperties: 1000, propertyNames: { format: 'unreserved' } },
)

export const Limits = Closed({
  memoryMB: Type.Optional(Type.Integer({ minimum: 8, maximum: 1_048_576 })),
  processes: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  cpuPercent: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
})

export const AdHocScript = Closed({
  type: Type.Optional(ScriptType),
  content: Content,
  timeout: Type.Optional(Timeout),
  name: Type.Optional(Line(128)),
})
export type AdHocScript = Static<typeof AdHocScript>

/** Exactly one of the two. Runs with the main script's params, user and directory (contract §15). */
const gate = { scriptId: Type.Optional(Id), script: Type.Optional(AdHocScript) }
const Verify = Closed({
  ...gate,
  retries: Type.Optional(
    Type.Integer({ minimum: 0, maximum: mostRetries, default: 0, description: 'Attempts after the first' }),
  ),
  intervalSeconds: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: longestInterval,
      default: defaultInterval,
      description: 'Seconds between two attempts',
    }),
  ),
  timeout: Type.Optional(Timeout),
})
const Rollback = Closed(gate)
export type GateOption = Static<typeof Rollback>

/** Options common to execute calls and schedules (contract §4, §13, §15). */
export const runOptions = {
  strategy: Type.Optional(Strategy),
  batchSize: Type.Optional(BatchSize),
  concurrency: Type.Optional(Count),
  maxFailures: Type.Optional(MaxFailures),
  pauseSeconds: Type.Optional(Type.Number({ minimum: 0, maximum: 86_400 })),
  timeout: Type.Optional(Timeout),
  queueSeconds: Type.Optional(Type.Number({ minimum: 0, maximum: 604_800 })),
  workDir: Type.Optional(Type.String({ maxLength: 4096, pattern: '^/[^\\u0000]*$' })),
  runAs: Type.Optional(
    Type.String({ pattern: '^[a-z_][a-z0-9_-]{0,31}$', description: 'the name of a user, like "deploy"' }),
  ),
  limits: Type.Optional(Limits),
  maxOutputBytes: Type.Optional(Type.Integer({ minimum: 1024, maximum: 1_099_511_627_776 })),
  verify: Type.Optional(Verify),
  rollback: Type.Optional(Rollback),
  /** Replaces /dev/null as the scripts' stdin (contract §13). */
  stdin: Type.Optional(Stdin),
  /** Bytes per second for file transfers, all hosts together. */
  limitRate: Type.Optional(LimitRate),
}
/** Options of every execute call (contract §4, §15). */
const options = {
  params: Type.Optional(Params),
  secretParams: Type.Optional(Params),
  async: Type.Optional(Type.Boolean()),
  ...runOptions,
}
const OptionsSchema = Closed(options)
export type ExecutionOptions = Static<typeof OptionsSchema>

export const ScriptExecute = Closed(
  { ...options, hostIds: HostIds },
  { examples: [{ hostIds: [7, 8], params: { UNIT: 'nginx' }, strategy: 'ROLLING', batchSize: '25%' }] },
)
export type ScriptExecute = Static<typeof ScriptExecute>

export const ClusterExecute = Closed(
  { ...options, scriptId: Id },
  {
    examples: [{ scriptId: 5, params: { UNIT: 'nginx' }, strategy: 'ROLLING', batchSize: [1, '10%', '50%'] }],
  },
)
export type ClusterExecute = Static<typeof ClusterExecute>

/** Installation over SSH; `url` and `fingerprint` as in an enrollment token (contract §10). */
const install = {
  sudo: Type.Optional(Type.Boolean()),
  forgetCredentials: Type.Optional(Type.Boolean()),
  url: Type.Optional(Line(2048)),
  fingerprint: Type.Optional(Line(128)),
}
export const Install = Closed(install)
export type Install = Static<typeof Install>

export const HostInstall = Closed(
  { ...install, async: Type.Optional(Type.Boolean()) },
  { examples: [{ sudo: true, forgetCredentials: true }] },
)
export type HostInstall = Static<typeof HostInstall>

export const TaskCreate = Closed(
  {
    ...options,
    scriptId: Type.Optional(Id),
    script: Type.Optional(AdHocScript),
    /** Instead of a script: upgrades the agents to this release of the server. Requires ADMIN (contract §10). */
    upgrade: Type.Optional(
      Closed({
        version: Type.Optional(Type.String({ pattern: versionPattern.source })),
        allowDowngrade: Type.Optional(Type.Boolean()),
      }),
    ),
    install: Type.Optional(Install),
    /** Instead of a script: a file to hosts, or from them (contract §13). */
    copy: Type.Optional(Copy),
    fetch: Type.Optional(Fetch),
    target: Target,
  },
  {
    examples: [
      {
        script: { type: 'BASH', content: 'uptime' },
        target: { hosts: ['web[1-20]'], tags: ['role=web'], exclude: ['web7'] },
        limits: { memoryMB: 512 },
      },
    ],
  },
)
export type TaskCreate = Static<typeof TaskCreate>

/**
 * Body of a retry. The new task runs the same text with the same params and options. `secretParams` must be given
 * again, because their values are deleted when a task ends.
 */
export const TaskRetry = Closed(
  {
    async: Type.Optional(Type.Boolean()),
    secretParams: Type.Optional(Params),
  },
  { examples: [{ async: false }] },
)
export type TaskRetry = Static<typeof TaskRetry>

/**
 * Answer of an execute call; with `async: false` it is the whole final task instead. `replayedAfterSeconds`: age of
 * the earlier request with the same `Idempotency-Key` that started it; null if this request did.
 */
export const Started = Type.Object({
  taskId: OpaqueId,
  status: TaskStatus,
  hostCount: Type.Integer(),
  replayedAfterSeconds: Nullable(Type.Integer({ minimum: 0 })),
})
export type Started = Static<typeof Started>

export const LateResult = Type.Object({
  status: ResultStatus,
  exitCode: Nullable(Type.Integer()),
  signal: Nullable(Type.String()),
  completedAt: Time,
})

export const Survivor = Type.Object({ pid: Type.Integer(), command: Type.String() })

const GateStatus = Type.Enum([...gateStatuses])
const gateResult = { status: GateStatus, exitCode: Nullable(Type.Integer()) }

export const TaskResult = Type.Object({
  hostId: Id,
  hostname: Type.String(),
  status: ResultStatus,
  exitCode: Nullable(Type.Integer()),
  signal: Nullable(Type.String()),
  startedAt: Nullable(Time),
  completedAt: Nullable(Time),
  duration: Nullable(Type.Number()),
  stdoutBytes: Type.Integer(),
  stderrBytes: Type.Integer(),
  truncated: Type.Boolean(),
  outputComplete: Type.Boolean(),
  error: Nullable(Type.String()),
  containment: Nullable(Containment),
  survivors: Nullable(Type.Array(Survivor)),
  changed: Nullable(Type.Boolean()),
  /** Set while RUNNING, otherwise null. */
  phase: Nullable(Type.Enum([...phases])),
  /** Null if they did not run; a null `exitCode` means unknown. */
  verify: Nullable(Type.Object({ ...gateResult, attempts: Type.Integer() })),
  rollback: Nullable(Type.Object(gateResult)),
  lateResult: Nullable(LateResult),
})

export const Counts = Type.Object(
  Object.fromEntries(resultStatuses.map((status) => [status, Type.Integer()])) as Record<
    core.ResultStatus,
    ReturnType<typeof Type.Integer>
  >,
)

const gateOfTask = {
  scriptId: Nullable(Id),
  scriptVersion: Nullable(Type.Integer()),
  scriptName: Nullable(Type.String()),
  firstLine: Nullable(Type.String()),
  type: ScriptType,
  timeout: Type.Integer(),
}

const Transfer = Type.Object({
  bytes: Type.Integer(),
  total: Nullable(Type.Integer()),
  bytesPerSecond: Nullable(Type.Integer()),
})

/** A task without its params and results, as lists and events carry it. */
export const TaskSummary = Type.Object({
  taskId: OpaqueId,
  status: TaskStatus,
  hostCount: Type.Integer(),
  counts: Counts,
  strategy: Strategy,
  batchSize: Nullable(BatchSize),
  scriptId: Nullable(Id),
  scriptVersion: Nullable(Type.Integer()),
  scriptName: Nullable(Type.String()),
  /** First line of an unnamed script that is not a comment, cut; without a script a summary. Null from older servers. */
  firstLine: Nullable(Type.String()),
  type: TaskType,
  timeout: Type.Integer(),
  /** Requested user; null: each agent's default user. */
  runAs: Nullable(Type.String()),
  limits: Nullable(Limits),
  verify: Nullable(Type.Object({ ...gateOfTask, retries: Type.Integer(), intervalSeconds: Type.Number() })),
  rollback: Nullable(Type.Object(gateOfTask)),
  copy: Nullable(TaskCopy),
  fetch: Nullable(TaskFetch),
  stdin: Nullable(TaskStdin),
  limitRate: Nullable(Type.Integer()),
  /** Bytes of files that passed this server; `total` is null if unknown, and shrinks if a host needs nothing. */
  transfer: Type.Optional(Nullable(Transfer)),
  clusterId: Nullable(Id),
  /** Task whose unsuccessful hosts this one retries. */
  retryOf: Nullable(OpaqueId),
  /** Schedule that started it. Older servers leave out this and `plannedAt`. */
  scheduleId: Type.Optional(Nullable(Id)),
  /** Slot of the schedule, before jitter; null if a user started it. */
  plannedAt: Type.Optional(Nullable(Time)),
  createdBy: Type.String(),
  createdAt: Time,
  startedAt: Nullable(Time),
  completedAt: Nullable(Time),
  duration: Nullable(Type.Number()),
})
export type TaskSummary = Omit<Static<typeof TaskSummary>, 'counts'> & { counts: core.Counts }
/** `server`: owner of a running task; null without one, or without a shared store. Absent from older servers. */
export const Task = Type.Object({
  ...TaskSummary.properties,
  params: Type.Record(Type.String(), Type.String()),
  server: Type.Optional(Nullable(Type.String())),
  results: Type.Array(TaskResult),
})
export type Task = TaskSummary & {
  params: Record<string, string>
  server?: string | null
  results: core.TaskResult[]
}

const GateText = Type.Object({ type: ScriptType, content: Type.String(), sha256: Type.String() })

/** Text and params that ran, only the names of secret ones (contract §3). 404 for a task without a script. */
export const TaskScript = Type.Object({
  taskId: OpaqueId,
  scriptId: Nullable(Id),
  scriptVersion: Nullable(Type.Integer()),
  scriptName: Nullable(Type.String()),
  type: ScriptType,
  content: Type.String(),
  sha256: Type.String(),
  params: Type.Record(Type.String(), Type.String()),
  secretParams: Type.Array(Type.String()),
  verify: Nullable(GateText),
  rollback: Nullable(GateText),
})
export type TaskScript = Static<typeof TaskScript>

/** Answer of an execute call: the final task with `async: false`, else `Started`. */
export const ExecutionAnswer = Type.Union([Started, Task])

export const TaskQuery = Closed({
  ...paging,
  status: Type.Optional(TaskStatus),
  scriptId: Type.Optional(Id),
  clusterId: Type.Optional(Id),
  hostId: Type.Optional(Id),
  scheduleId: Type.Optional(Id),
  createdBy: Type.Optional(Type.String({ maxLength: 64 })),
})
export type TaskQuery = Static<typeof TaskQuery>

/** Without either, returns all results (contract §3). */
export const ResultsQuery = Closed({
  page: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000 })),
  size: Type.Optional(Type.Integer({ minimum: 1, maximum: largestPage })),
})
