import type { Readable } from 'node:stream'
import type {
  LoginRequest,
  LoginResult,
  Me,
  PasswordChange,
  TotpConfirmed,
  TotpCreated,
  User,
} from '../../core/protocol/http/users.ts'
import type {
  ClusterService,
  EnrollmentService,
  HostService,
  ScheduleService,
  ScriptService,
  SessionService,
  TerminalService,
  TokenService,
  UserService,
  WebhookService,
} from '../../core/services.ts'
import type { Api } from '../http/api.ts'

export interface ClientTerminalService extends TerminalService {
  /** The asciicast of a session as it stands, from its beginning. `not_found` where there is none, or none any more. */
  recording(sessionId: string): Promise<Readable>
}

/** Older servers do not send `token`. */
export type Caller = User & Partial<Pick<Me, 'token'>>

/** The caller's own session (contract §3). */
export interface AuthService {
  login(credentials: LoginRequest): Promise<LoginResult>
  logout(): Promise<unknown>
  me(): Promise<Caller>
  /** All sessions and tokens of the caller end with it, this one too. `forbidden` where the current one is wrong. */
  changePassword(input: PasswordChange): Promise<unknown>
  /** A secret for an authenticator app; a code of it has to be confirmed. `conflict` where logins take codes already. */
  createTotp(currentPassword: string): Promise<TotpCreated>
  confirmTotp(code: string): Promise<TotpConfirmed>
  removeTotp(code: string): Promise<unknown>
}

export function clustersOver(api: Api): ClusterService {
  return {
    list: (query) => api.page('/api/clusters', query),
    get: (id) => api.call('GET', `/api/clusters/${id}`),
    create: (body) => api.call('POST', '/api/clusters', { body }),
    update: (id, body) => api.call('PATCH', `/api/clusters/${id}`, { body }),
    remove: (id) => api.call('DELETE', `/api/clusters/${id}`),
  }
}

export function enrollmentsOver(api: Api): EnrollmentService {
  return {
    list: (query) => api.page('/api/enrollment-tokens', query),
    create: (body) => api.call('POST', '/api/enrollment-tokens', { body }),
    remove: (id) => api.call('DELETE', `/api/enrollment-tokens/${id}`),
  }
}

export function hostsOver(api: Api): HostService {
  return {
    list: (query) => api.page('/api/hosts', query),
    get: (id) => api.call('GET', `/api/hosts/${id}`),
    metrics: (id, query) => api.call('GET', `/api/hosts/${id}/metrics`, { query }),
    create: (body) => api.call('POST', '/api/hosts', { body }),
    update: (id, body) => api.call('PATCH', `/api/hosts/${id}`, { body }),
    revokeAgent: (id) => api.call('DELETE', `/api/hosts/${id}/agent`),
    remove: (id, options = {}) =>
      api.call('DELETE', `/api/hosts/${id}`, { query: options.force === true ? { force: true } : {} }),
  }
}

export function schedulesOver(api: Api): ScheduleService {
  const path = (id: number) => `/api/schedules/${id}`
  return {
    list: (query) => api.page('/api/schedules', query),
    get: (id) => api.call('GET', path(id)),
    create: (body) => api.call('POST', '/api/schedules', { body }),
    update: (id, body) => api.call('PATCH', path(id), { body }),
    remove: (id) => api.call('DELETE', path(id)),
    run: (id) => api.call('POST', `${path(id)}/run`, { has: ['taskId'] }),
    next: (id, query) => api.call('GET', `${path(id)}/next`, { query, has: ['next'] }),
    history: (id, query) => api.page(`${path(id)}/history`, query),
  }
}

export function scriptsOver(api: Api): ScriptService {
  return {
    list: (query) => api.page('/api/scripts', query),
    get: (id) => api.call('GET', `/api/scripts/${id}`),
    create: (body) => api.call('POST', '/api/scripts', { body }),
    update: (id, body) => api.call('PATCH', `/api/scripts/${id}`, { body }),
    versions: (id, query) => api.page(`/api/scripts/${id}/versions`, query),
    version: (id, version) => api.call('GET', `/api/scripts/${id}/versions/${version}`),
    remove: (id) => api.call('DELETE', `/api/scripts/${id}`),
  }
}

export function sessionsOver(api: Api): SessionService {
  return {
    list: (query) => api.page('/api/auth/sessions', query),
    remove: (id) => api.call('DELETE', `/api/auth/sessions/${id}`),
    removeOthers: () => api.call('DELETE', '/api/auth/sessions'),
  }
}

export function tokensOver(api: Api): TokenService {
  return {
    list: (query) => api.page('/api/tokens', query),
    create: (body) => api.call('POST', '/api/tokens', { body }),
    remove: (id) => api.call('DELETE', `/api/tokens/${id}`),
  }
}

export function usersOver(api: Api): UserService {
  return {
    list: (query) => api.page('/api/users', query),
    get: (id) => api.call('GET', `/api/users/${id}`),
    create: (body) => api.call('POST', '/api/users', { body }),
    update: (id, body) => api.call('PATCH', `/api/users/${id}`, { body }),
    remove: (id) => api.call('DELETE', `/api/users/${id}`),
  }
}

export function webhooksOver(api: Api): WebhookService {
  return {
    list: (query) => api.page('/api/webhooks', query),
    get: (id) => api.call('GET', `/api/webhooks/${id}`),
    create: (body) => api.call('POST', '/api/webhooks', { body }),
    update: (id, body) => api.call('PATCH', `/api/webhooks/${id}`, { body }),
    remove: (id) => api.call('DELETE', `/api/webhooks/${id}`),
    test: (id) => api.call('POST', `/api/webhooks/${id}/test`),
    deliveries: (id, query) => api.page(`/api/webhooks/${id}/deliveries`, query),
  }
}

export function terminalsOver(api: Api): ClientTerminalService {
  const path = (sessionId: string) => `/api/terminals/${encodeURIComponent(sessionId)}`
  return {
    list: (query) => api.page('/api/terminals', query),
    get: (sessionId) => api.call('GET', path(sessionId)),
    create: (body) => api.call('POST', '/api/terminals', { body }),
    ticket: (sessionId, body) => api.call('POST', `${path(sessionId)}/ticket`, { body }),
    remove: (sessionId) => api.call('DELETE', path(sessionId)),
    recording: (sessionId) => api.download(`${path(sessionId)}/recording`, '*/*'),
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
