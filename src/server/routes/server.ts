import { ServerInfo } from '../../core/protocol/http/server.ts'
import type { AppInstance } from '../http/app.ts'
import { operation } from './operation/operation.ts'
import type { RouteDependencies } from './routes.ts'

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
}
