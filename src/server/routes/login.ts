import { Nothing } from '../../core/protocol/http/common.ts'
import {
  LoginRequest,
  LoginResult,
  Me,
  PasswordChange,
  TotpConfirm,
  TotpConfirmed,
  TotpCreate,
  TotpCreated,
} from '../../core/protocol/http/users.ts'
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
      summary: 'Revoke the token of this request',
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
    operation({ id: 'getMe', tag, summary: 'Read the user of this token', allow: own, answer: Me }),
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

export function totpRoutes(app: AppInstance, { services: { totp } }: RouteDependencies): void {
  app.post(
    '/api/auth/totp',
    operation({
      id: 'createTotp',
      tag,
      summary: 'Set up an authenticator app as a second factor; takes effect once a code is confirmed',
      allow: session,
      body: TotpCreate,
      answer: TotpCreated,
      errors: ['conflict', 'too_many'],
      audit: { action: 'totp.create', object: 'user' },
    }),
    (request) => totp.create(userOf(request), request.body, request.client, request.hostname),
  )
  app.post(
    '/api/auth/totp/confirm',
    operation({
      id: 'confirmTotp',
      tag,
      summary:
        'Confirm the app with a code, which logins require from then on; returns recovery codes, shown only once',
      allow: session,
      body: TotpConfirm,
      answer: TotpConfirmed,
      errors: ['conflict', 'too_many'],
      audit: { action: 'totp.confirm', object: 'user' },
    }),
    (request) => totp.confirm(userOf(request), request.body),
  )
  app.post(
    '/api/auth/totp/remove',
    operation({
      id: 'removeTotp',
      tag,
      summary: 'Remove the second factor; requires a code of the app or a recovery code',
      allow: session,
      body: TotpConfirm,
      answer: Nothing,
      errors: ['conflict', 'too_many'],
      audit: { action: 'totp.remove', object: 'user' },
    }),
    async (request) => {
      await totp.remove(userOf(request), request.body)
      return {}
    },
  )
}
