import type { LoginRequest, LoginResult, Me, PasswordChange, User } from '../../core/protocol/http/users.ts'
import type { Api } from '../http/api.ts'

/** Older servers do not send `token`. */
export type Caller = User & Partial<Pick<Me, 'token'>>

/** The caller's own session (contract §3). */
export interface AuthService {
  login(credentials: LoginRequest): Promise<LoginResult>
  logout(): Promise<unknown>
  me(): Promise<Caller>
  /** All sessions and tokens of the caller end with it, this one too. `forbidden` where the present one is wrong. */
  changePassword(input: PasswordChange): Promise<unknown>
}

export function authOver(api: Api): AuthService {
  return {
    login: (body) => api.call('POST', '/api/auth/login', { body, has: ['token', 'user'] }),
    logout: () => api.call('POST', '/api/auth/logout'),
    changePassword: (body) => api.call('POST', '/api/auth/password', { body }),
    me: () => api.call('GET', '/api/auth/me', { has: ['username'] }),
  }
}
