import { IdOnly, PageOf } from '../../core/protocol/http/common.ts'
import { User, UserCreate, UserPatch, UserQuery } from '../../core/protocol/http/users.ts'
import type { AppInstance } from '../http/app.ts'
import { userOf } from '../http/auth.ts'
import { idOf, operation } from '../http/operation.ts'
import type { RouteDependencies } from './dependencies.ts'

const allow = { users: 'administer' } as const
const write = { users: 'administer', lasting: true } as const
const exists = 'users' as const
const tag = 'users' as const

export function userRoutes(app: AppInstance, { services: { users } }: RouteDependencies): void {
  app.get(
    '/api/users',
    operation({
      id: 'listUsers',
      tag,
      summary: 'List users',
      allow,
      query: UserQuery,
      answer: PageOf(User),
    }),
    (request) => users.list(userOf(request), request.query),
  )
  app.post(
    '/api/users',
    operation({
      id: 'createUser',
      tag,
      summary: 'Create a user',
      allow: write,
      body: UserCreate,
      answer: User,
      created: true,
      errors: ['conflict', 'too_many'],
      audit: { action: 'user.create', object: 'user' },
    }),
    (request) => users.create(userOf(request), request.body),
  )
  app.get(
    '/api/users/:id',
    operation({ id: 'getUser', tag, summary: 'Read a user', allow, exists, answer: User }),
    (request) => users.get(userOf(request), idOf(request)),
  )
  app.patch(
    '/api/users/:id',
    operation({
      id: 'updateUser',
      tag,
      summary: 'Change a user; a new password or role ends all of their sessions and tokens',
      allow: write,
      exists,
      body: UserPatch,
      answer: User,
      errors: ['conflict', 'too_many'],
      usesReserve: true,
      audit: { action: 'user.update', object: 'user' },
    }),
    (request) => users.update(userOf(request), idOf(request), request.body),
  )
  app.delete(
    '/api/users/:id',
    operation({
      id: 'deleteUser',
      tag,
      summary: 'Delete a user; all of their sessions and tokens end',
      allow: write,
      exists,
      answer: IdOnly,
      errors: ['conflict'],
      usesReserve: true,
      audit: { action: 'user.delete', object: 'user' },
    }),
    (request) => users.remove(userOf(request), idOf(request)),
  )
}
