import { IdOnly, PageOf, PageQuery } from '../../core/protocol/http/common.ts'
import { Session, SessionsEnded } from '../../core/protocol/http/users.ts'
import type { AppInstance } from '../http/app.ts'
import { userOf } from '../http/auth.ts'
import { operation } from '../http/operation.ts'
import type { RouteDependencies } from './dependencies.ts'

const session = { session: true } as const
const tag = 'authentication' as const

export function sessionRoutes(app: AppInstance, { services: { sessions } }: RouteDependencies): void {
  app.get(
    '/api/auth/sessions',
    operation({
      id: 'listSessions',
      tag,
      summary: "List one's own logins that still last, the one used last first",
      allow: { anyUser: true },
      query: PageQuery,
      answer: PageOf(Session),
    }),
    (request) => sessions.list(userOf(request), request.query),
  )
  app.delete(
    '/api/auth/sessions',
    operation({
      id: 'deleteOtherSessions',
      tag,
      summary:
        "End all of one's own logins but the one that makes this call; what hangs on them closes at once",
      allow: session,
      answer: SessionsEnded,
      usesReserve: true,
      audit: { action: 'session.deleteOthers', object: 'user' },
    }),
    (request) => sessions.removeOthers(userOf(request)),
  )
  app.delete(
    '/api/auth/sessions/:id',
    operation({
      id: 'deleteSession',
      tag,
      summary: "End one of one's own logins; what hangs on it closes at once",
      allow: session,
      exists: 'sessions',
      answer: IdOnly,
      usesReserve: true,
      audit: { action: 'session.delete', object: 'session' },
    }),
    (request) => sessions.remove(userOf(request), Number((request.params as { id: string }).id)),
  )
}
