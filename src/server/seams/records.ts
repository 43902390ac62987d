import { compareNatural } from '../../core/selector/natural-order.ts'
import type { ClusterRecord } from './records/cluster.ts'
import type { EnrollmentRecord, TombstoneRecord } from './records/enrollment.ts'
import type { ExecutionRecord } from './records/execution.ts'
import type { HostRecord } from './records/host.ts'
import type { KeyRecord, RunRecord } from './records/run.ts'
import type { ScriptRecord } from './records/script.ts'
import type { IdempotencyRecord, TaskRecord } from './records/task.ts'
import type { TerminalRecord } from './records/terminal.ts'
import type { TokenRecord } from './records/token.ts'
import type { UserRecord } from './records/user.ts'

/** What a store holds, by noun. */
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

export const nouns = Object.keys(indexes) as readonly Noun[]

/** Orders of lists beside that by id. */
export const orders = {
  hosts: { hostname: (a, b) => compareNatural(a.hostname, b.hostname) },
} satisfies { [N in Noun]?: Record<string, (a: Records[N], b: Records[N]) => number> }

export type OrderOf<N extends Noun> = N extends keyof typeof orders ? keyof (typeof orders)[N] : never
