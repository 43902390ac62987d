import { PageQuery } from '../../core/protocol/http/common.ts'
import { UserCreate, UserPatch } from '../../core/protocol/http/users.ts'
import type { AppInstance } from '../app.ts'
import { userOf } from '../auth.ts'
import { idOf } from './path.ts'
import type { RouteDependencies } from './routes.ts'

const allow = { users: 'administer' } as const
const all = { config: { allow } }
const one = { config: { allow, exists: 'users' } } as const

export function userRoutes(app: AppInstance, { services }: RouteDependencies): void {
  app.get('/api/users', { ...all, schema: { summary: 'List users', querystring: PageQuery } }, (request) =>
    services(userOf(request)).users.list(request.query),
  )
  app.post(
    '/api/users',
    { ...all, schema: { summary: 'Create a user', body: UserCreate } },
    (request, reply) => {
      reply.code(201)
      return services(userOf(request)).users.create(request.body)
    },
  )
  app.get('/api/users/:id', { ...one, schema: { summary: 'Read a user' } }, (request) =>
    services(userOf(request)).users.get(idOf(request)),
  )
  app.patch('/api/users/:id', { ...one, schema: { summary: 'Change a user', body: UserPatch } }, (request) =>
    services(userOf(request)).users.update(idOf(request), request.body),
  )
  app.delete('/api/users/:id', { ...one, schema: { summary: 'Delete a user' } }, (request) =>
    services(userOf(request)).users.remove(idOf(request)),
  )
}
