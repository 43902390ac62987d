import type { AuditEntry } from './audit.ts'
import type { Enrollment, EnrollmentCreate, EnrollmentCreated, Parted } from './protocol/http/agent.ts'
import type { AuditQuery } from './protocol/http/audit.ts'
import type {
  Cluster,
  ClusterCreate,
  ClusterPatch,
  ClusterQuery,
  HostSelect,
} from './protocol/http/clusters.ts'
import type { NamedQuery, Page, PageQuery } from './protocol/http/common.ts'
import type { TaskFile } from './protocol/http/files.ts'
import type {
  Host,
  HostCreate,
  HostMetrics,
  HostMetricsQuery,
  HostPatch,
  HostQuery,
} from './protocol/http/hosts.ts'
import type { LogPage, LogQuery } from './protocol/http/logs.ts'
import type {
  NextQuery,
  Schedule,
  ScheduleCreate,
  SchedulePatch,
  ScheduleQuery,
  ScheduleSlot,
  ScheduleSummary,
  ScheduleTimes,
} from './protocol/http/schedules.ts'
import type {
  Script,
  ScriptCreate,
  ScriptPatch,
  ScriptQuery,
  ScriptSummary,
  ScriptVersion,
  ScriptVersionSummary,
} from './protocol/http/scripts.ts'
import type {
  ClusterExecute,
  HostInstall,
  ScriptExecute,
  Started,
  Task,
  TaskCreate,
  TaskQuery,
  TaskRetry,
  TaskScript,
  TaskSummary,
} from './protocol/http/tasks.ts'
import type {
  Terminal,
  TerminalCreate,
  TerminalCreated,
  TerminalQuery,
  TerminalTicket,
  TerminalTicketCreate,
} from './protocol/http/terminals.ts'
import type {
  Session,
  SessionsEnded,
  Token,
  TokenCreate,
  TokenCreated,
  User,
  UserCreate,
  UserPatch,
  UserQuery,
} from './protocol/http/users.ts'
import type {
  Delivery,
  DeliveryQuery,
  Webhook,
  WebhookCreate,
  WebhookPatch,
  WebhookSaved,
  WebhookTest,
} from './protocol/http/webhooks.ts'

/** The usual operations of a noun. */
interface Crud<Item, Query, Create, Patch, Saved = Item, Listed = Item> {
  list(query: Query): Promise<Page<Listed>>
  get(id: number): Promise<Item>
  create(input: Create): Promise<Saved>
  update(id: number, patch: Patch): Promise<Saved>
  remove(id: number): Promise<{ id: number }>
}

/**
 * HTTP call of a service method. `has` lists fields without which an answer is not from an rsm server. Rights and
 * schemas are declared in server/routes, because loading all schemas adds 6 ms to each start of the command line.
 */
export interface Call<Path extends string = string> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: Path
  readonly has: readonly string[]
  readonly onlyReads: boolean
}

/** Arguments of a method: the ids in the path, then its query (GET, DELETE), or its body and a query. */
export type Calls<Service> = { readonly [Method in keyof Service]: Call }

const call = <Path extends string>(
  method: Call['method'],
  path: Path,
  has: readonly string[] = [],
): Call<Path> => ({ method, path, has, onlyReads: method === 'GET' })

export const pageFields = ['content', 'totalElements', 'totalPages'] as const
const page = <Path extends string>(path: Path) => call('GET', path, pageFields)

const crud = <Path extends string>(path: Path) => ({
  list: page(path),
  get: call('GET', `${path}/:id`),
  create: call('POST', path),
  update: call('PATCH', `${path}/:id`),
  remove: call('DELETE', `${path}/:id`),
})

export interface HostService extends Crud<Host, HostQuery, HostCreate, HostPatch> {
  /** Hosts that a task would run on, in natural order of names; `invalid` if there are none, as for the task. */
  select(input: HostSelect, query?: PageQuery): Promise<Page<Host>>
  /** Downsampled history, by default of the last 24 hours. `invalid` names `from` if it is after `to`. */
  metrics(id: number, query: HostMetricsQuery): Promise<HostMetrics>
  /**
   * Revokes the agent token; its link closes at once, and no existing enrollment token admits it again (contract §3).
   * `not_found` for a host without an agent.
   */
  revokeAgent(id: number): Promise<Parted>
  /** `conflict` while it runs something, unless `force`: then its results become LOST (contract §3). */
  remove(id: number, options?: { force?: boolean }): Promise<Parted>
}
export const hostCalls = {
  ...crud('/api/hosts'),
  select: { ...call('POST', '/api/hosts/select', pageFields), onlyReads: true },
  metrics: call('GET', '/api/hosts/:id/metrics'),
  revokeAgent: call('DELETE', '/api/hosts/:id/agent'),
} satisfies Calls<HostService>

/** `list` has texts only if `name` asks for one script. `update` creates a version if it changes anything. */
export interface ScriptService
  extends Crud<Script, ScriptQuery, ScriptCreate, ScriptPatch, Script, ScriptSummary> {
  /** All versions, ascending, the current one last. */
  versions(id: number, query: PageQuery): Promise<Page<ScriptVersionSummary>>
  /** `not_found` for a version that never existed. */
  version(id: number, version: number): Promise<ScriptVersion>
}
export const scriptCalls = {
  ...crud('/api/scripts'),
  versions: page('/api/scripts/:id/versions'),
  version: call('GET', '/api/scripts/:id/versions/:version'),
} satisfies Calls<ScriptService>

export type ClusterService = Crud<Cluster, ClusterQuery, ClusterCreate, ClusterPatch>
export const clusterCalls = crud('/api/clusters') satisfies Calls<ClusterService>

/** The last enabled ADMIN cannot be removed, demoted or disabled: `conflict`. */
export type UserService = Crud<User, UserQuery, UserCreate, UserPatch>
export const userCalls = crud('/api/users') satisfies Calls<UserService>

export interface EnrollmentService {
  list(query: NamedQuery): Promise<Page<Enrollment>>
  create(input: EnrollmentCreate): Promise<EnrollmentCreated>
  remove(id: number): Promise<{ id: number }>
}
export const enrollmentCalls = {
  list: page('/api/enrollment-tokens'),
  create: call('POST', '/api/enrollment-tokens'),
  remove: call('DELETE', '/api/enrollment-tokens/:id'),
} satisfies Calls<EnrollmentService>

/** The caller's own personal access tokens. */
export interface TokenService {
  list(query: NamedQuery): Promise<Page<Token>>
  /** `forbidden` for a role above the caller's. */
  create(input: TokenCreate): Promise<TokenCreated>
  remove(id: number): Promise<{ id: number }>
}
export const tokenCalls = {
  list: page('/api/tokens'),
  create: call('POST', '/api/tokens'),
  remove: call('DELETE', '/api/tokens/:id'),
} satisfies Calls<TokenService>

/** The caller's own logins (contract §2). */
export interface SessionService {
  /** Active sessions, the most recently used first. */
  list(query: PageQuery): Promise<Page<Session>>
  /** Closes its streams and terminals at once. */
  remove(id: number): Promise<{ id: number }>
  removeOthers(): Promise<SessionsEnded>
}
export const sessionCalls = {
  list: page('/api/auth/sessions'),
  remove: call('DELETE', '/api/auth/sessions/:id'),
  removeOthers: call('DELETE', '/api/auth/sessions'),
} satisfies Calls<SessionService>

export interface TaskService {
  list(query: TaskQuery): Promise<Page<TaskSummary>>
  /** Without a query: all results. */
  get(taskId: string, query?: PageQuery): Promise<Task>
  /** The same `idempotencyKey` within 24 h returns the first task; with another body it is a `conflict`. */
  create(input: TaskCreate, idempotencyKey?: string): Promise<Started | Task>
  executeScript(scriptId: number, input: ScriptExecute, idempotencyKey?: string): Promise<Started | Task>
  executeCluster(clusterId: number, input: ClusterExecute, idempotencyKey?: string): Promise<Started | Task>
  /** A task of type INSTALL on one host, for an ADMIN (contract §10). */
  installAgent(hostId: number, input: HostInstall, idempotencyKey?: string): Promise<Started | Task>
  /** `conflict` for a finished task. */
  cancel(taskId: string): Promise<Task>
  /**
   * Starts a new task with the same text, params and options on the hosts that did not succeed. `conflict` while the
   * task runs, and if all its hosts succeeded. Secret params must be given again: `invalid` names the missing ones.
   */
  retry(taskId: string, input: TaskRetry, idempotencyKey?: string): Promise<Started | Task>
  script(taskId: string): Promise<TaskScript>
  /** File fetched from each host, in the order of the plan. `not_found` for a task that fetches nothing. */
  files(taskId: string, query: PageQuery): Promise<Page<TaskFile>>
  logs(taskId: string, query: LogQuery): Promise<LogPage>
}
export const taskCalls = {
  list: page('/api/tasks'),
  get: call('GET', '/api/tasks/:taskId', ['taskId', 'results', 'counts']),
  create: call('POST', '/api/tasks', ['taskId']),
  executeScript: call('POST', '/api/scripts/:id/execute'),
  executeCluster: call('POST', '/api/clusters/:id/execute'),
  installAgent: call('POST', '/api/hosts/:id/install-agent', ['taskId']),
  cancel: call('POST', '/api/tasks/:taskId/cancel'),
  retry: call('POST', '/api/tasks/:taskId/retry', ['taskId']),
  script: call('GET', '/api/tasks/:taskId/script'),
  files: page('/api/tasks/:taskId/files'),
  logs: call('GET', '/api/tasks/:taskId/logs', ['entries']),
} satisfies Calls<TaskService>

/**
 * Scripts and copies at set times (contract §14). Changes are `forbidden` to all but its owner and ADMINs. `list`
 * leaves out the texts unless `name` asks for one schedule. An `update` of what runs, where or how makes the caller
 * its owner and drops others' secret params; so does `enabled: true` of a suspended one. `confirmed: true` gives its
 * secrets to its stored scripts as they are now.
 */
export interface ScheduleService
  extends Crud<Schedule, ScheduleQuery, ScheduleCreate, SchedulePatch, Schedule, ScheduleSummary> {
  /**
   * Runs it now with the rights of the caller, whatever its timing, even if it is paused or suspended. `forbidden`
   * with secrets of another user, except for ADMINs.
   */
  run(id: number): Promise<Started>
  /** Next slots, ignoring pause and suspension. */
  next(id: number, query: NextQuery): Promise<ScheduleTimes>
  /** Outcomes of its slots, newest first; the newest 100 are kept. */
  history(id: number, query: PageQuery): Promise<Page<ScheduleSlot>>
}
export const scheduleCalls = {
  ...crud('/api/schedules'),
  run: call('POST', '/api/schedules/:id/run', ['taskId']),
  next: call('GET', '/api/schedules/:id/next', ['next']),
  history: page('/api/schedules/:id/history'),
} satisfies Calls<ScheduleService>

/** Terminal sessions of the caller (contract §7); an ADMIN sees everyone's. Another user's is `not_found`. */
export interface TerminalService {
  /** Newest first. */
  list(query: TerminalQuery): Promise<Page<Terminal>>
  get(sessionId: string): Promise<Terminal>
  /** Resolves when it is open. `conflict` if the host is OFFLINE, has no terminals, or refuses. */
  create(input: TerminalCreate): Promise<TerminalCreated>
  /** `conflict` for a session that has ended; watching is `forbidden` to all but ADMINs. */
  ticket(sessionId: string, input: TerminalTicketCreate): Promise<TerminalTicket>
  /** Ends the session and its processes; an ended one stays as it is. */
  remove(sessionId: string): Promise<{ sessionId: string }>
}
export const terminalCalls = {
  list: page('/api/terminals'),
  get: call('GET', '/api/terminals/:sessionId'),
  create: call('POST', '/api/terminals'),
  ticket: call('POST', '/api/terminals/:sessionId/ticket'),
  remove: call('DELETE', '/api/terminals/:sessionId'),
} satisfies Calls<TerminalService>

/**
 * URLs to which the server sends events (contract §16), for administrators. `invalid` names `url` if the server may
 * not send there. `remove` drops the pending deliveries.
 */
export interface WebhookService extends Crud<Webhook, NamedQuery, WebhookCreate, WebhookPatch, WebhookSaved> {
  /** Sends one event at once, before pending ones, and returns the outcome. */
  test(id: number): Promise<WebhookTest>
  /** Newest first; only the last ones of those that have ended. */
  deliveries(id: number, query: DeliveryQuery): Promise<Page<Delivery>>
}
export const webhookCalls = {
  ...crud('/api/webhooks'),
  test: call('POST', '/api/webhooks/:id/test'),
  deliveries: page('/api/webhooks/:id/deliveries'),
} satisfies Calls<WebhookService>

/** The audit log (contract §3), for administrators. */
export interface AuditService {
  /** Newest first. */
  list(query: AuditQuery): Promise<Page<AuditEntry>>
}

/**
 * The services of rsm, each declared once: the server implements them on the store, the client calls them over HTTP,
 * and one suite in test/contracts runs against both. Every method rejects with an RsmError: `not_found` for an
 * unknown id, `invalid` with all field faults, `conflict` for a name that is taken, `forbidden` for a caller whose
 * role lacks the right. An unknown name inside a body is `invalid` on the server (contract §1: 400); if it is the
 * only fault of the body, the client makes it `not_found`, for the exit code (contract §9: 5).
 */
export interface Services {
  hosts: HostService
  scripts: ScriptService
  clusters: ClusterService
  users: UserService
  tokens: TokenService
  sessions: SessionService
  enrollments: EnrollmentService
  tasks: TaskService
  webhooks: WebhookService
  schedules: ScheduleService
}
