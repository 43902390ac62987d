import { Nothing } from '../../core/protocol/http/common.ts'
import { TotpConfirm, TotpConfirmed, TotpCreate, TotpCreated } from '../../core/protocol/http/users.ts'
import type { AppInstance } from '../http/app.ts'
import { userOf } from '../http/auth.ts'
import { operation } from '../http/operation.ts'
import type { RouteDependencies } from './dependencies.ts'

const session = { session: true } as const
const tag = 'authentication' as const

export function totpRoutes(app: AppInstance, { services: { totp } }: RouteDependencies): void {
  app.post(
    '/api/auth/totp',
    operation({
      id: 'createTotp',
      tag,
      summary:
        'Set up an authenticator app as a second factor; nothing changes before one of its codes is confirmed',
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
        'Confirm the app by a code: from then on logins take one; answers recovery codes, shown only once',
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
      summary: 'Log in with the password alone again; takes a code of the app, or a recovery code',
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
