import { Nothing } from '../../core/protocol/http/common.ts'
import { LoginRequest, LoginResult, Me, PasswordChange } from '../../core/protocol/http/users.ts'
import type { AppInstance } from '../http/app.ts'
import { userOf } from '../http/auth.ts'
import { operation } from '../http/operation.ts'
import type { RouteDependencies } from './dependencies.ts'

const own = { anyUser: true } as const
const session = { session: true } as const
const tag = 'authentication' as const

export function loginRoutes(app: AppInstance, { services: { login } }: RouteDependencies): void {
  app.post(
    '/api/auth/login',
    operation({
      id: 'login',
      tag,
      summary: 'Log in: a session token for a username and a password',
      allow: { open: true },
      body: LoginRequest,
      answer: LoginResult,
      errors: ['unauthenticated', 'too_many'],
      usesReserve: true,
      audit: { action: 'user.login', object: 'user' },
    }),
    (request) => login.login(request.body, request.client, request.headers['user-agent']),
  )
  app.post(
    '/api/auth/logout',
    operation({
      id: 'logout',
      tag,
      summary: 'End the token that makes this call',
      allow: own,
      answer: Nothing,
      usesReserve: true,
      audit: { action: 'user.logout', object: 'user' },
    }),
    async (request) => {
      await login.logout(userOf(request))
      return {}
    },
  )
  app.get(
    '/api/auth/me',
    operation({ id: 'getMe', tag, summary: 'Whom this token stands for', allow: own, answer: Me }),
    (request) => login.me(userOf(request)),
  )
  app.post(
    '/api/auth/password',
    operation({
      id: 'changePassword',
      tag,
      summary: "Change one's own password; all of one's sessions and tokens end",
      allow: session,
      body: PasswordChange,
      answer: Nothing,
      errors: ['too_many'],
      usesReserve: true,
      audit: { action: 'user.password', object: 'user' },
    }),
    async (request) => {
      const { currentPassword, newPassword } = request.body
      await login.changePassword(userOf(request), currentPassword, newPassword, request.client)
      return {}
    },
  )
}
