import { readFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { RsmError } from '../../core/errors.ts'
import type { Page, PageQuery } from '../../core/protocol/http/common.ts'
import type { Server, ServerInfo, ServerStatus, Standing } from '../../core/protocol/http/server.ts'
import type { TaskCreate, TaskRetry } from '../../core/protocol/http/tasks.ts'
import type {
  LoginRequest,
  LoginResult,
  Me,
  PasswordChange,
  TotpConfirmed,
  TotpCreated,
  User,
} from '../../core/protocol/http/users.ts'
import {
  type Call,
  type Calls,
  type TaskService,
  type TerminalService,
  terminalCalls,
} from '../../core/services.ts'
import type { Api } from '../http/api.ts'

/** Aborting `signal` ends the wait for the answer; the task may have started, or been cancelled. */
export interface ClientTaskService extends TaskService {
  get(taskId: string, query?: PageQuery, signal?: AbortSignal): ReturnType<TaskService['get']>
  cancel(taskId: string, signal?: AbortSignal): ReturnType<TaskService['cancel']>
  create(input: TaskCreate, idempotencyKey?: string, signal?: AbortSignal): ReturnType<TaskService['create']>
  retry(
    taskId: string,
    input: TaskRetry,
    idempotencyKey?: string,
    signal?: AbortSignal,
  ): ReturnType<TaskService['retry']>
}

export interface ClientTerminalService extends TerminalService {
  /** Asciicast of a session so far. `not_found` without a recording, or after its removal. */
  recording(sessionId: string): Promise<Readable>
}

/** `token` is absent from older servers. */
export type Caller = User & Partial<Pick<Me, 'token'>>

/** The caller's own session (contract §3). */
export interface AuthService {
  login(credentials: LoginRequest): Promise<LoginResult>
  logout(): Promise<unknown>
  me(): Promise<Caller>
  /** Ends all sessions and tokens of the caller, including this one. `forbidden` if the current password is wrong. */
  changePassword(input: PasswordChange): Promise<unknown>
  /** Secret to be confirmed with a code. `conflict` if logins already require codes. */
  createTotp(currentPassword: string): Promise<TotpCreated>
  confirmTotp(code: string): Promise<TotpConfirmed>
  removeTotp(code: string): Promise<unknown>
}

/** A service over HTTP. After the arguments in `Calls`, a method accepts an idempotency key and a signal. */
export function serviceOver<Service>(api: Api, calls: Calls<NoInfer<Service>>): Service {
  const methods = Object.entries<Call>(calls).map(([name, call]) => [
    name,
    (...args: unknown[]) => send(api, call, args),
  ])
  return Object.fromEntries(methods) as Service
}

function send(api: Api, { method, path, has, onlyReads }: Call, args: unknown[]): Promise<unknown> {
  const at = path.replaceAll(/:\w+/g, () => encodeURIComponent(String(args.shift())))
  const signal = args.at(-1) instanceof AbortSignal ? (args.pop() as AbortSignal) : undefined
  const [input, more] = args
  return api.call(method, at, {
    ...(method === 'GET' || method === 'DELETE' ? { query: input ?? {} } : { body: input }),
    ...(typeof more === 'object' && more !== null && { query: more }),
    // With a key, a request whose answer was lost is sent again: the task starts once (contract §4).
    ...(typeof more === 'string' && { headers: { 'idempotency-key': more }, repeatable: true }),
    signal,
    has,
    onlyReads,
  })
}

export function terminalsOver(api: Api): ClientTerminalService {
  return {
    ...serviceOver<TerminalService>(api, terminalCalls),
    recording: (sessionId) =>
      api.download(`/api/terminals/${encodeURIComponent(sessionId)}/recording`, '*/*'),
  }
}

export function authOver(api: Api): AuthService {
  return {
    login: (body) => api.call('POST', '/api/auth/login', { body, has: ['token', 'user'] }),
    logout: () => api.call('POST', '/api/auth/logout'),
    changePassword: (body) => api.call('POST', '/api/auth/password', { body }),
    createTotp: (currentPassword) => api.call('POST', '/api/auth/totp', { body: { currentPassword } }),
    confirmTotp: (code) => api.call('POST', '/api/auth/totp/confirm', { body: { code } }),
    removeTotp: (code) => api.call('POST', '/api/auth/totp/remove', { body: { code } }),
    me: () => api.call('GET', '/api/auth/me', { has: ['username'] }),
  }
}

/** A unique key, from the kernel if possible because loading node:crypto takes a tenth of a start. */
export function newIdempotencyKey(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/uuid', 'utf8').trim()
  } catch {
    return process.getBuiltinModule('node:crypto').randomUUID()
  }
}

/** The server itself (contract §3). */
export interface ServerService {
  /** Null from older servers. */
  info(): Promise<ServerInfo | null>
  /** Null from older servers. */
  status(): Promise<ServerStatus | null>
  /** All servers of its store, including itself. Null from older servers. */
  servers(): Promise<Server[] | null>
  /** Why it accepts no work; null if it does. */
  notReady(): Promise<string | null>
  /** Answer of `/api/ready`, which needs no token. */
  readiness(): Promise<Readiness>
}

/** `server` is null if the store is not shared, and from older servers. */
export interface Readiness {
  readonly notReady: string | null
  readonly server: Pick<Standing, 'name' | 'leaseSeconds'> | null
}

/** Older servers give no reasons. */
function readinessOf({ data, message }: RsmError): Readiness {
  const { reasons, server }: { reasons?: unknown; server?: Standing | null } = data ?? {}
  return { notReady: Array.isArray(reasons) ? reasons.join('; ') : message, server: server ?? null }
}

export function serverOver(api: Api): ServerService {
  const ifKnown = <T>(path: string) =>
    api.call<T>('GET', path).catch((error: unknown) => {
      if (error instanceof RsmError && error.code === 'not_found') return null
      throw error
    })
  const readiness = () =>
    api.call<{ server?: Standing | null }>('GET', '/api/ready', { mayBeRefused: true }).then(
      ({ server = null }): Readiness => ({ notReady: null, server }),
      (error: unknown) => {
        if (error instanceof RsmError && error.code === 'unavailable') return readinessOf(error)
        throw error
      },
    )
  return {
    info: () => ifKnown<ServerInfo>('/api/server'),
    status: () => ifKnown<ServerStatus>('/api/server/status'),
    servers: async () => (await ifKnown<Page<Server>>('/api/servers?size=500'))?.content ?? null,
    notReady: async () => (await readiness()).notReady,
    readiness,
  }
}
