import { compareNatural, naturalKey } from '../../../core/selector/natural-order.ts'
import type { FileRecord } from './file.ts'
import type { ClusterRecord, EnrollmentRecord, HostRecord, TombstoneRecord } from './host.ts'
import type { KeyRecord, RunRecord } from './run.ts'
import type { ScheduleRecord, SlotRecord } from './schedule.ts'
import type { ScriptRecord } from './script.ts'
import type { ExecutionRecord, IdempotencyRecord, TaskRecord } from './task.ts'
import type { TerminalRecord } from './terminal.ts'
import type { TokenRecord, UserRecord } from './user.ts'
import type { DeliveryRecord, WebhookRecord } from './webhook.ts'

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
  files: FileRecord
  runs: RunRecord
  keys: KeyRecord
  webhooks: WebhookRecord
  deliveries: DeliveryRecord
  schedules: ScheduleRecord
  slots: SlotRecord
}
export type Noun = keyof Records

type IndexesOf<N extends Noun> = Record<
  string,
  { unique: boolean; key: (record: Records[N]) => string | number | null }
>

/** Secondary indexes; null keys are not indexed. A clash in a unique one is an RsmError `conflict`. */
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
    /** Empty for tasks of older servers. */
    hostSet: { unique: false, key: ({ hostSet }) => hostSet ?? '' },
    scheduleId: { unique: false, key: ({ scheduleId }) => scheduleId ?? null },
    fileId: { unique: false, key: ({ copy, stdin }) => copy?.file.fileId ?? stdin?.fileId ?? null },
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
  files: {},
  runs: {},
  keys: {},
  webhooks: { name: { unique: true, key: ({ name }) => name.toLowerCase() } },
  deliveries: {
    webhookId: { unique: false, key: ({ webhookId }) => webhookId },
    queue: { unique: false, key: ({ webhookId, status }) => `${webhookId}/${status}` },
  },
  schedules: {
    name: { unique: true, key: ({ name }) => name.toLowerCase() },
    ownerId: { unique: false, key: ({ ownerId }) => ownerId },
    fileId: { unique: false, key: ({ copy, options }) => copy?.fileId ?? options.stdin?.fileId ?? null },
  },
  slots: { scheduleId: { unique: false, key: ({ scheduleId }) => scheduleId } },
} satisfies { [N in Noun]: IndexesOf<N> }

export type IndexOf<N extends Noun> = Extract<keyof (typeof indexes)[N], string>

export const nouns = Object.keys(indexes) as readonly Noun[]

export type AnyRecord = Records[Noun]
export type Id = string | number
export type Key = string | number

export interface Index {
  name: string
  unique: boolean
  key(record: AnyRecord): Key | null
}

/** Indexes by noun, without the noun's type: a record is only ever passed to the indexes of its own noun. */
export const indexList: Record<Noun, readonly Index[]> = Object.fromEntries(
  nouns.map((noun) => [
    noun,
    Object.entries(indexes[noun]).map(([name, index]) => ({ name, ...(index as Omit<Index, 'name'>) })),
  ]),
) as unknown as Record<Noun, readonly Index[]>

/** Nouns with long texts, and the user name of their author. */
export const authors = {
  scripts: ({ changedBy, createdBy }: ScriptRecord) => changedBy ?? createdBy,
  schedules: ({ owner }: ScheduleRecord) => owner,
  tasks: ({ createdBy }: TaskRecord) => createdBy,
}

type FieldOf<N extends Noun> = Extract<keyof Records[N], string>

/** Conditions on a field: its value, text that it contains, a time bound, or members. */
type Asked = 'value' | 'text' | 'time' | 'list' | 'map' | 'set'

/**
 * Fields that queries use beside index keys, so that an implementation can store them apart from the record.
 * `text` is compared in lower case, `time` is ISO 8601, and a `set` is folded (core/tasks/id-set.ts).
 */
export const asked = {
  hosts: { hostname: 'text', ip: 'text', tags: 'map' },
  scripts: { name: 'text', description: 'text', type: 'value', category: 'value', tags: 'list' },
  clusters: { name: 'text', description: 'text', hostIds: 'list' },
  users: { username: 'text', email: 'text', role: 'value', enabled: 'value' },
  tokens: { kind: 'value', expiresAt: 'time' },
  enrollments: { expiresAt: 'time' },
  tombstones: {},
  tasks: { hostSet: 'set', completedAt: 'time' },
  executions: {},
  idempotency: { createdAt: 'time' },
  terminals: { endedAt: 'time' },
  files: { expiresAt: 'time' },
  runs: {},
  keys: {},
  webhooks: {},
  deliveries: { endedAt: 'time' },
  schedules: { name: 'text' },
  slots: {},
} as const satisfies { [N in Noun]: { [F in FieldOf<N>]?: Asked } }

export type AskedOf<N extends Noun, A extends Asked> = {
  [F in keyof (typeof asked)[N]]: (typeof asked)[N][F] extends A ? F : never
}[keyof (typeof asked)[N]]

/** Order of lists other than by id; sorting by the UTF-8 bytes of `key`, then by id, equals `compare`. */
interface Order<N extends Noun> {
  /** Never zero for two records. */
  compare(a: Records[N], b: Records[N]): number
  key(record: Records[N]): string
}

const dueKey = ({ dueAt }: ScheduleRecord) => dueAt ?? '~'
const compareText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

export const orders = {
  hosts: {
    hostname: {
      compare: (a, b) => compareNatural(a.hostname, b.hostname),
      key: ({ hostname }) => naturalKey(hostname),
    },
  },
  schedules: {
    /** Next due first; schedules without a due time last. */
    dueAt: {
      compare: (a, b) => compareText(dueKey(a), dueKey(b)) || a.id - b.id,
      key: dueKey,
    },
  },
} satisfies { [N in Noun]?: Record<string, Order<N>> }

export type OrderOf<N extends Noun> = N extends keyof typeof orders ? keyof (typeof orders)[N] : never

/** Only the named fields of a record, so that a new field stays hidden until it is listed. */
export function pick<T extends object, K extends keyof T>(record: T, ...names: K[]): Pick<T, K> {
  const picked = {} as Pick<T, K>
  for (const name of names) picked[name] = record[name]
  return picked
}
