import type { TotpConfirmed, TotpCreated } from '../../core/protocol/http/totp.ts'
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
  /** A secret for an authenticator app; a code of it has to be confirmed. `conflict` where logins take codes already. */
  createTotp(currentPassword: string): Promise<TotpCreated>
  confirmTotp(code: string): Promise<TotpConfirmed>
  removeTotp(code: string): Promise<unknown>
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
