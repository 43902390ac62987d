import { ServerInfo, ServerStatus } from '../../core/protocol/http/server.ts'
import type { AppInstance } from '../http/app.ts'
import type { RouteDependencies } from './dependencies.ts'
import { operation } from './operation/operation.ts'

export function serverRoutes(app: AppInstance, deps: RouteDependencies): void {
  app.get(
    '/api/server',
    operation({
      id: 'getServer',
      tag: 'server',
      summary: 'Its version, its time, and the intervals of its agents',
      allow: { users: 'read' },
      answer: ServerInfo,
    }),
    () => deps.info(),
  )
  app.get(
    '/api/server/status',
    operation({
      id: 'getServerStatus',
      tag: 'server',
      summary:
        'How it is: its start, work that it holds since it was restored from a backup, a clock that has jumped',
      allow: { users: 'read' },
      answer: ServerStatus,
    }),
    () => deps.status(),
  )
}
