import type { AuthType } from '../../core/host.ts'
import type { Right, Role } from '../../core/permissions.ts'
import type { SystemInfo } from '../../core/protocol/http/hosts.ts'
import type { ScriptType } from '../../core/protocol/http/scripts.ts'
import type {
  BatchSize,
  Limits,
  MaxFailures,
  ResultStatus,
  Strategy,
  TaskResult,
  TaskStatus,
} from '../../core/protocol/http/tasks.ts'
import type { TerminalStatus } from '../../core/protocol/http/terminals.ts'
import { compareNatural } from '../../core/selector/natural-order.ts'

/** Text sealed with the key file of the server, base64; bound to the record that holds it. */
type Sealed = string

export interface HostRecord {
  id: number
  hostname: string
  ip: string
  sshPort: number
  authType: AuthType
  username: string | null
  password: Sealed | null
  privateKey: Sealed | null
  tags: Record<string, string>
  systemInfo: SystemInfo | null
  agent: {
    agentId: string
    agentVersion: string
    registeredAt: string
    /** SHA-256 of the agent's token, hex; null once revoked. */
    tokenHash: string | null
    /** Whether the token has ever been shown to us: until then a lost reply may be repeated (contract §3). */
    tokenUsed: boolean
    enrollmentId: number | null
    /** When its token was revoked. Absent while it is good, and in records of older servers: those come back by `hosts join --replace` only. */
    revokedAt?: string
  } | null
  createdAt: string
  updatedAt: string
}

export interface ScriptRecord {
  id: number
  name: string
  description: string
  type: ScriptType
  content: string
  timeout: number | null
  tags: string[]
  category: string | null
  version: number
  sha256: string
  createdBy: string
  /** Who made this version; absent in records that were written before versions were kept. */
  changedBy?: string
  createdAt: string
  updatedAt: string
}

export interface ClusterRecord {
  id: number
  name: string
  description: string
  /** Members of a static cluster; empty for a dynamic one. */
  hostIds: number[]
  selector: string | null
  createdAt: string
  updatedAt: string
}

export interface UserRecord {
  id: number
  username: string
  role: Role
  /** Absent in records of older servers: none. */
  rights?: Right[]
  email: string | null
  enabled: boolean
  /** `scrypt$N$r$p$salt$hash`. */
  passwordHash: string
  lastLoginAt: string | null
  createdAt: string
  updatedAt: string
}

/** A login session or a personal access token: opaque to its holder, a hash to us. */
export interface TokenRecord {
  id: number
  kind: 'session' | 'personal'
  name: string | null
  tokenHash: string
  userId: number
  role: Role
  /** Of a personal one: whether it may write users and enrolment tokens. Absent in records of older servers: it may not. */
  admin?: boolean
  createdAt: string
  lastUsedAt: string
  expiresAt: string
}

export interface EnrollmentRecord {
  id: number
  name: string | null
  tokenHash: string
  maxUses: number
  uses: number
  tags: Record<string, string>
  clusterId: number | null
  hostId: number | null
  createdBy: string
  createdAt: string
  expiresAt: string
}

/**
 * An agent that was removed or revoked, and so is not let in by the enrolment tokens of that moment (contract §3). It
 * goes when none of them is open.
 */
export interface TombstoneRecord {
  /** The agentId. */
  id: string
  state: 'removed' | 'revoked'
  hostId: number
  hostname: string
  /** The highest id that an enrolment token had then. */
  enrollmentId: number
  createdAt: string
}

/** A task without its hosts' parts. It keeps its own copy of script, target and creator (contract §3). */
export interface TaskRecord {
  id: string
  status: TaskStatus
  hostCount: number
  /** Counts by result status, kept when the task is final; while it runs they follow from its executions. */
  counts: Record<ResultStatus, number> | null
  strategy: Strategy
  batchSize: BatchSize | null
  concurrency: number | null
  maxFailures: MaxFailures | null
  pauseSeconds: number
  queueSeconds: number | null
  scriptId: number | null
  scriptVersion: number | null
  scriptName: string | null
  /** Of a script without a name. Absent in records of older servers, and of scripts with one. */
  firstLine?: string | null
  type: ScriptType
  /** The text that runs; null when the task is final: then it stands in the task's archive. */
  content: string | null
  params: Record<string, string>
  /** JSON of `secretParams`, sealed; removed when the task is final. */
  secretParams: Sealed | null
  timeout: number
  workDir: string | null
  runAs: string | null
  /** Absent in records of older servers. */
  limits?: Limits | null
  maxOutputBytes: number
  clusterId: number | null
  /** Ids of its hosts, folded like `1-300,305`: what a search by host needs. Absent in records of older servers. */
  hostSet?: string
  /** Names of the secret params, which a retry has to be given again. Absent in records of older servers. */
  secretParamNames?: string[]
  /** The task whose unsuccessful hosts this one took up again. Absent in records of older servers. */
  retryOf?: string | null
  createdBy: string
  createdById: number
  createdAt: string
  startedAt: string | null
  completedAt: string | null
  duration: number | null
  cancelRequestedAt: string | null
  /** When the next batch may start, while the strategy pauses; survives a restart. */
  pauseUntil: string | null
}

/** One host's part of a running task, key `taskId/hostId`; moves to the task's results file when the task ends. */
export interface ExecutionRecord {
  id: string
  taskId: string
  hostId: number
  hostname: string
  /** Place in the order of the plan. */
  position: number
  status: ResultStatus
  /** When its turn came; the queue wait counts from here. */
  dueAt: string | null
  /** Durable before the frame leaves: at most one start (contract §4). */
  sentAt: string | null
  /** The journal of the agent it was sent to; null for a base-protocol agent. */
  agentStoreId: string | null
  /** The process of that agent, and how far its journal went; absent in records of older servers, null for older agents. */
  agentInstanceId?: string | null
  agentJournal?: number | null
  /** Whether the agent has ever said that it has it: from then on it is never sent again. */
  named: boolean
  cancelRequested: boolean
  exitCode: number | null
  signal: string | null
  startedAt: string | null
  completedAt: string | null
  duration: number | null
  stdoutBytes: number
  stderrBytes: number
  truncated: boolean
  outputComplete: boolean
  error: string | null
  /** Absent until an agent has told; so is `survivors`. */
  containment?: TaskResult['containment']
  survivors?: TaskResult['survivors']
  /** What was learnt after the final state (contract §4). */
  lateResult: TaskResult['lateResult']
}

/** An Idempotency-Key of a user, for 24 h; id is `userId/key`. */
export interface IdempotencyRecord {
  id: string
  bodyHash: string
  taskId: string
  createdAt: string
}

/** A terminal session (contract §7). */
export interface TerminalRecord {
  id: string
  hostId: number
  hostname: string
  agentId: string
  user: string
  userId: number
  /** Of the token that it hangs on: the session ends with it. */
  tokenId: number
  status: TerminalStatus
  cols: number
  rows: number
  runAs: string | null
  shell: string | null
  term: string | null
  command: string | null
  /** Whether the command has nothing to read. */
  noStdin: boolean
  startedAt: string
  endedAt: string | null
  exitCode: number | null
  signal: string | null
  reason: string | null
  recorded: boolean
  /** Of an ended session. */
  recordingBytes: number
}

/** The key that the store was used with, by the name of its file. */
export interface KeyRecord {
  id: 'seal.key' | 'signing.key'
  /** Of the key itself: it tells one from another, and nothing of it. */
  keyId: string
  notedAt: string
}

/** One start of a server. */
export interface RunRecord {
  id: string
  startedAt: string
  /** The number of the last commit before it, and of its own last one; null while it runs. */
  first: number
  last: number | null
  /** That the store is a backup which was brought back, as this run found out. */
  restore?: RestoreNote
}

export interface RestoreNote {
  noticedAt: string
  /** A sentence that says what proved it. */
  reason: string
  /** Whose agent proved it; null where `rsm server restore` says it. */
  hostId: number | null
  agentId: string | null
  /** What is held until it is confirmed: tasks that were there at the start. */
  taskIds: string[]
  /** Runs that this store does not know, or not to their ends: once confirmed they prove nothing more. */
  strangers: string[]
  confirmedAt: string | null
}

export interface Records {
  hosts: HostRecord
  scripts: ScriptRecord
  clusters: ClusterRecord
  users: UserRecord
  tokens: TokenRecord
  enrollments: EnrollmentRecord
  tombstones: TombstoneRecord
  tasks: TaskRecord
  executions: ExecutionRecord
  idempotency: IdempotencyRecord
  terminals: TerminalRecord
  runs: RunRecord
  keys: KeyRecord
}
export type Noun = keyof Records
export const nouns = [
  'hosts',
  'scripts',
  'clusters',
  'users',
  'tokens',
  'enrollments',
  'tombstones',
  'tasks',
  'executions',
  'idempotency',
  'terminals',
  'runs',
  'keys',
] as const satisfies readonly Noun[]

type IndexesOf<N extends Noun> = Record<
  string,
  { unique: boolean; key: (record: Records[N]) => string | number | null }
>

/** Secondary indexes; a null key is not indexed. A clash on a unique one is an RsmError `conflict`. */
export const indexes = {
  hosts: {
    hostname: { unique: true, key: (host) => host.hostname.toLowerCase() },
    agentId: { unique: true, key: (host) => host.agent?.agentId ?? null },
    agentToken: { unique: true, key: (host) => host.agent?.tokenHash ?? null },
  },
  scripts: { name: { unique: true, key: (script) => script.name.toLowerCase() } },
  clusters: { name: { unique: true, key: (cluster) => cluster.name.toLowerCase() } },
  users: { username: { unique: true, key: (user) => user.username.toLowerCase() } },
  tokens: {
    tokenHash: { unique: true, key: (token) => token.tokenHash },
    userId: { unique: false, key: (token) => token.userId },
    name: { unique: false, key: ({ name }) => name?.toLowerCase() ?? null },
  },
  enrollments: {
    tokenHash: { unique: true, key: (enrollment) => enrollment.tokenHash },
    name: { unique: false, key: ({ name }) => name?.toLowerCase() ?? null },
  },
  tombstones: {},
  tasks: {
    status: { unique: false, key: ({ status }) => status },
    scriptId: { unique: false, key: ({ scriptId }) => scriptId },
    clusterId: { unique: false, key: ({ clusterId }) => clusterId },
    createdBy: { unique: false, key: ({ createdBy }) => createdBy },
    /** Empty for those of older servers. */
    hostSet: { unique: false, key: ({ hostSet }) => hostSet ?? '' },
  },
  executions: {
    taskId: { unique: false, key: (execution) => execution.taskId },
    hostId: { unique: false, key: (execution) => execution.hostId },
  },
  idempotency: {},
  terminals: {
    status: { unique: false, key: ({ status }) => status },
    hostId: { unique: false, key: ({ hostId }) => hostId },
    user: { unique: false, key: ({ user }) => user.toLowerCase() },
    userId: { unique: false, key: ({ userId }) => userId },
  },
  runs: {},
  keys: {},
} satisfies { [N in Noun]: IndexesOf<N> }

export type IndexOf<N extends Noun> = Extract<keyof (typeof indexes)[N], string>

/** Orders of lists beside that by id. */
export const orders = {
  hosts: { hostname: (a, b) => compareNatural(a.hostname, b.hostname) },
} satisfies { [N in Noun]?: Record<string, (a: Records[N], b: Records[N]) => number> }

export type OrderOf<N extends Noun> = N extends keyof typeof orders ? keyof (typeof orders)[N] : never
