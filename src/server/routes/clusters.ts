import { ClusterCreate, ClusterPatch } from '../../core/protocol/http/clusters.ts'
import { PageQuery } from '../../core/protocol/http/common.ts'
import { ClusterExecute } from '../../core/protocol/http/tasks.ts'
import type { AppInstance } from '../app.ts'
import { userOf } from '../auth.ts'
import { idempotencyKeyOf } from './idempotency-key.ts'
import { idOf } from './path.ts'
import type { RouteDependencies } from './routes.ts'

const read = { users: 'read' } as const
const change = { users: 'change' } as const
const execute = { users: 'execute' } as const
const exists = 'clusters' as const

export function clusterRoutes(app: AppInstance, { services }: RouteDependencies): void {
  app.get(
    '/api/clusters',
    { config: { allow: read }, schema: { summary: 'List clusters', querystring: PageQuery } },
    (request) => services(userOf(request)).clusters.list(request.query),
  )
  app.post(
    '/api/clusters',
    { config: { allow: change }, schema: { summary: 'Create a cluster', body: ClusterCreate } },
    (request, reply) => {
      reply.code(201)
      return services(userOf(request)).clusters.create(request.body)
    },
  )
  app.get(
    '/api/clusters/:id',
    { config: { allow: read, exists }, schema: { summary: 'Read a cluster' } },
    (request) => services(userOf(request)).clusters.get(idOf(request)),
  )
  app.patch(
    '/api/clusters/:id',
    { config: { allow: change, exists }, schema: { summary: 'Change a cluster', body: ClusterPatch } },
    (request) => services(userOf(request)).clusters.update(idOf(request), request.body),
  )
  app.delete(
    '/api/clusters/:id',
    { config: { allow: change, exists }, schema: { summary: 'Delete a cluster' } },
    (request) => services(userOf(request)).clusters.remove(idOf(request)),
  )
  app.post(
    '/api/clusters/:id/execute',
    {
      config: { allow: execute, exists },
      schema: { summary: 'Run a script on a cluster', body: ClusterExecute },
    },
    (request) =>
      services(userOf(request)).tasks.executeCluster(idOf(request), request.body, idempotencyKeyOf(request)),
  )
}
