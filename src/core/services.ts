import type { AuditEntry } from './audit.ts'
import type { AuditQuery } from './protocol/http/audit.ts'
import type { Cluster, ClusterCreate, ClusterPatch, ClusterQuery } from './protocol/http/clusters.ts'
import type { NamedQuery, Page, PageQuery } from './protocol/http/common.ts'
import type { Enrollment, EnrollmentCreate, EnrollmentCreated, Parted } from './protocol/http/enrollments.ts'
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

/**
 * The services of rsm, each declared once: the server implements them on the store, the client implements them over
 * HTTP, and one suite in test/contracts runs against both. Every method rejects with an RsmError: `not_found` for an
 * unknown id, `invalid` with all field faults, `conflict` for a name that is taken, `forbidden` for a caller whose
 * role has not the right. An unknown name inside a body is `invalid` on the server (contract §1: 400); where that is all
 * that is wrong with the body, the client makes it `not_found`, for the exit code (contract §9: 5).
 */
export interface HostService {
  list(query: HostQuery): Promise<Page<Host>>
  get(id: number): Promise<Host>
  /** History, thinned out; by default the last 24 hours. `invalid` names `from` when it is after `to`. */
  metrics(id: number, query: HostMetricsQuery): Promise<HostMetrics>
  create(input: HostCreate): Promise<Host>
  update(id: number, patch: HostPatch): Promise<Host>
  /**
   * Revokes the agent token; its link closes at once (contract §3), and no enrollment token that there is lets it in again
   * (contract §3). `not_found` for a host without one.
   */
  revokeAgent(id: number): Promise<Parted>
  /** `conflict` while it runs something, unless `force`: then its results become LOST (contract §3). */
  remove(id: number, options?: { force?: boolean }): Promise<Parted>
}

export interface ScriptService {
  /** Without their texts, unless `name` asks for one. */
  list(query: ScriptQuery): Promise<Page<ScriptSummary>>
  get(id: number): Promise<Script>
  create(input: ScriptCreate): Promise<Script>
  /** Every change makes a new version; one that changes nothing makes none. */
  update(id: number, patch: ScriptPatch): Promise<Script>
  /** All versions, ascending, the present one last. */
  versions(id: number, query: PageQuery): Promise<Page<ScriptVersionSummary>>
  /** `not_found` for a version that there never was. */
  version(id: number, version: number): Promise<ScriptVersion>
  remove(id: number): Promise<{ id: number }>
}

export interface ClusterService {
  list(query: ClusterQuery): Promise<Page<Cluster>>
  get(id: number): Promise<Cluster>
  create(input: ClusterCreate): Promise<Cluster>
  update(id: number, patch: ClusterPatch): Promise<Cluster>
  remove(id: number): Promise<{ id: number }>
}

export interface UserService {
  list(query: UserQuery): Promise<Page<User>>
  get(id: number): Promise<User>
  create(input: UserCreate): Promise<User>
  /** The last enabled ADMIN can be neither demoted nor disabled: `conflict`. */
  update(id: number, patch: UserPatch): Promise<User>
  remove(id: number): Promise<{ id: number }>
}

export interface EnrollmentService {
  list(query: NamedQuery): Promise<Page<Enrollment>>
  create(input: EnrollmentCreate): Promise<EnrollmentCreated>
  remove(id: number): Promise<{ id: number }>
}

/** The caller's own personal access tokens. */
export interface TokenService {
  list(query: NamedQuery): Promise<Page<Token>>
  /** `forbidden` for a role above the caller's. */
  create(input: TokenCreate): Promise<TokenCreated>
  remove(id: number): Promise<{ id: number }>
}

/** The caller's own logins (contract §2). */
export interface SessionService {
  /** Those that still last, the one that was used last first. */
  list(query: PageQuery): Promise<Page<Session>>
  /** What hangs on it closes at once. */
  remove(id: number): Promise<{ id: number }>
  /** All but the one that makes the call. */
  removeOthers(): Promise<SessionsEnded>
}

export interface TaskService {
  list(query: TaskQuery): Promise<Page<TaskSummary>>
  /** Without a query: all results. */
  get(taskId: string, query?: PageQuery): Promise<Task>
  /** The same `idempotencyKey` within 24 h answers the first task; with another body it is a `conflict`. */
  create(input: TaskCreate, idempotencyKey?: string): Promise<Started | Task>
  executeScript(scriptId: number, input: ScriptExecute, idempotencyKey?: string): Promise<Started | Task>
  executeCluster(clusterId: number, input: ClusterExecute, idempotencyKey?: string): Promise<Started | Task>
  /** A task of type INSTALL on one host, for an ADMIN (contract §10). */
  installAgent(hostId: number, input: HostInstall, idempotencyKey?: string): Promise<Started | Task>
  /** A finished task: `conflict`. */
  cancel(taskId: string): Promise<Task>
  /**
   * A new task, with the same text, params and options, on the hosts that did not succeed. A task that runs or whose
   * hosts all succeeded: `conflict`. Its secret params have to be given again: `invalid` names those that are missing.
   */
  retry(taskId: string, input: TaskRetry, idempotencyKey?: string): Promise<Started | Task>
  script(taskId: string): Promise<TaskScript>
  /** Of each host, in the order of the plan, what it fetches from there. A task that fetches nothing: `not_found`. */
  files(taskId: string, query: PageQuery): Promise<Page<TaskFile>>
  logs(taskId: string, query: LogQuery): Promise<LogPage>
}

/** What runs by itself, and when (contract §14). Writes by its owner or an ADMIN: anybody else's are `forbidden`. */
export interface ScheduleService {
  /** Without their texts, unless `name` asks for one. */
  list(query: ScheduleQuery): Promise<Page<ScheduleSummary>>
  get(id: number): Promise<Schedule>
  create(input: ScheduleCreate): Promise<Schedule>
  /**
   * Whoever changes what runs, where or how becomes its owner; others' secret params are dropped then. `enabled: true` of
   * one that is suspended does so, too. `confirmed: true` gives its secrets to its stored scripts as they are now.
   */
  update(id: number, patch: SchedulePatch): Promise<Schedule>
  remove(id: number): Promise<{ id: number }>
  /**
   * Runs it now, with the rights of the caller, whatever its timing, and also where it is paused or suspended. One with secrets of
   * another user: `forbidden` but for ADMINs.
   */
  run(id: number): Promise<Started>
  /** Its next slots, as if it were neither paused nor suspended. */
  next(id: number, query: NextQuery): Promise<ScheduleTimes>
  /** What became of its slots, newest first; the newest 100 are kept. */
  history(id: number, query: PageQuery): Promise<Page<ScheduleSlot>>
}

/** Terminal sessions (contract §7): one's own; an ADMIN sees everyone's. Another's is `not_found`. */
export interface TerminalService {
  /** Newest first. */
  list(query: TerminalQuery): Promise<Page<Terminal>>
  get(sessionId: string): Promise<Terminal>
  /**
   * Resolves when the host has opened it. `conflict` for a host that is OFFLINE, has no terminal facility, or refuses;
   * the message says which.
   */
  create(input: TerminalCreate): Promise<TerminalCreated>
  /** `conflict` for a session that has ended; `forbidden` to watch for all but an ADMIN. */
  ticket(sessionId: string, input: TerminalTicketCreate): Promise<TerminalTicket>
  /** Ends it and its processes; one that has ended stays as it is. */
  remove(sessionId: string): Promise<{ sessionId: string }>
}

/** Where the server says what has happened (contract §16), for administrators. */
export interface WebhookService {
  list(query: NamedQuery): Promise<Page<Webhook>>
  get(id: number): Promise<Webhook>
  /** `invalid` names `url` where nothing may be sent there. */
  create(input: WebhookCreate): Promise<WebhookSaved>
  update(id: number, patch: WebhookPatch): Promise<WebhookSaved>
  /** What waits for it goes with it. */
  remove(id: number): Promise<{ id: number }>
  /** Sends one event at once, past what waits, and answers what came of it. */
  test(id: number): Promise<WebhookTest>
  /** Newest first; of those that have ended the last ones only. */
  deliveries(id: number, query: DeliveryQuery): Promise<Page<Delivery>>
}

/** The audit log (contract §3), for administrators. */
export interface AuditService {
  /** Newest first. */
  list(query: AuditQuery): Promise<Page<AuditEntry>>
}

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
