import type { LoginRequest, LoginResult, User } from '../../core/protocol/http/users.ts'
import type { Api } from '../http/api.ts'

/** The caller's own session (contract §3). */
export interface AuthService {
  login(credentials: LoginRequest): Promise<LoginResult>
  logout(): Promise<unknown>
  me(): Promise<User>
}

export function authOver(api: Api): AuthService {
  return {
    login: (body) => api.call('POST', '/api/auth/login', { body }),
    logout: () => api.call('POST', '/api/auth/logout'),
    me: () => api.call('GET', '/api/auth/me'),
  }
}
