import { IdOnly, NamedQuery, PageOf } from '../../core/protocol/http/common.ts'
import { Token, TokenCreate, TokenCreated } from '../../core/protocol/http/users.ts'
import type { AppInstance } from '../http/app.ts'
import { userOf } from '../http/auth.ts'
import { operation } from '../http/operation.ts'
import type { RouteDependencies } from './dependencies.ts'

const own = { anyUser: true } as const
const session = { session: true } as const
const tag = 'tokens' as const

export function tokenRoutes(app: AppInstance, { services: { tokens } }: RouteDependencies): void {
  app.get(
    '/api/tokens',
    operation({
      id: 'listTokens',
      tag,
      summary: "List one's own personal access tokens",
      allow: own,
      query: NamedQuery,
      answer: PageOf(Token),
    }),
    (request) => tokens.list(userOf(request), request.query),
  )
  app.post(
    '/api/tokens',
    operation({
      id: 'createToken',
      tag,
      summary: 'Make a personal access token, for a pipeline; its text is shown only once',
      allow: session,
      body: TokenCreate,
      answer: TokenCreated,
      created: true,
      errors: ['conflict'],
      audit: { action: 'token.create', object: 'token' },
    }),
    (request) => tokens.create(userOf(request), request.body),
  )
  app.delete(
    '/api/tokens/:id',
    operation({
      id: 'deleteToken',
      tag,
      summary: "Revoke one of one's own personal access tokens; what hangs on it closes at once",
      allow: session,
      exists: 'tokens',
      answer: IdOnly,
      usesReserve: true,
      audit: { action: 'token.delete', object: 'token' },
    }),
    (request) => tokens.remove(userOf(request), Number((request.params as { id: string }).id)),
  )
}
