import { Type } from 'typebox'
import { Closed } from '../../core/protocol/http/common.ts'
import { LoginRequest } from '../../core/protocol/http/users.ts'
import type { AppInstance } from '../app.ts'
import { userOf } from '../auth.ts'
import type { RouteDependencies } from './routes.ts'

const PasswordChange = Closed({
  currentPassword: Type.String({ minLength: 1, maxLength: 1024 }),
  newPassword: Type.String({ minLength: 8, maxLength: 1024 }),
})
const own = { config: { allow: { anyUser: true } } } as const

export function loginRoutes(app: AppInstance, { login }: RouteDependencies): void {
  app.post(
    '/api/auth/login',
    { config: { allow: { open: true } }, schema: { summary: 'Log in', body: LoginRequest } },
    (request) => login.login(request.body, request.ip),
  )
  app.post('/api/auth/logout', { ...own, schema: { summary: 'End this session' } }, async (request) => {
    await login.logout(userOf(request))
    return {}
  })
  app.get('/api/auth/me', { ...own, schema: { summary: 'Who this token stands for' } }, (request) =>
    login.me(userOf(request)),
  )
  app.post(
    '/api/auth/password',
    { ...own, schema: { summary: "Change one's own password", body: PasswordChange } },
    async (request) => {
      await login.changePassword(userOf(request), request.body.currentPassword, request.body.newPassword)
      return {}
    },
  )
}
