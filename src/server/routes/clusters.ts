import { Cluster, ClusterCreate, ClusterPatch, ClusterQuery } from '../../core/protocol/http/clusters.ts'
import { IdOnly, PageOf } from '../../core/protocol/http/common.ts'
import { ClusterExecute, ExecutionAnswer } from '../../core/protocol/http/tasks.ts'
import type { AppInstance } from '../http/app.ts'
import { idOf, operation } from '../http/operation.ts'
import type { RouteDependencies } from './dependencies.ts'
import { idempotencyHeader, idempotencyKeyOf, starterOf } from './starting.ts'

const read = { users: 'read' } as const
const change = { users: 'change' } as const
const execute = { users: 'execute' } as const
const exists = 'clusters' as const
const tag = 'clusters' as const

export function clusterRoutes(app: AppInstance, { services: { clusters, tasks } }: RouteDependencies): void {
  app.get(
    '/api/clusters',
    operation({
      id: 'listClusters',
      tag,
      summary: 'List clusters',
      allow: read,
      query: ClusterQuery,
      answer: PageOf(Cluster),
    }),
    (request) => clusters.list(request.query),
  )
  app.post(
    '/api/clusters',
    operation({
      id: 'createCluster',
      tag,
      summary: 'Create a cluster, of named hosts or by a selector',
      allow: change,
      body: ClusterCreate,
      answer: Cluster,
      created: true,
      errors: ['conflict'],
      audit: { action: 'cluster.create', object: 'cluster' },
    }),
    (request) => clusters.create(request.body),
  )
  app.get(
    '/api/clusters/:id',
    operation({ id: 'getCluster', tag, summary: 'Read a cluster', allow: read, exists, answer: Cluster }),
    (request) => clusters.get(idOf(request)),
  )
  app.patch(
    '/api/clusters/:id',
    operation({
      id: 'updateCluster',
      tag,
      summary: 'Change a cluster',
      allow: change,
      exists,
      body: ClusterPatch,
      answer: Cluster,
      errors: ['conflict'],
      audit: { action: 'cluster.update', object: 'cluster' },
    }),
    (request) => clusters.update(idOf(request), request.body),
  )
  app.delete(
    '/api/clusters/:id',
    operation({
      id: 'deleteCluster',
      tag,
      summary: 'Delete a cluster; its hosts stay',
      allow: change,
      exists,
      answer: IdOnly,
      usesReserve: true,
      audit: { action: 'cluster.delete', object: 'cluster' },
    }),
    (request) => clusters.remove(idOf(request)),
  )
  app.post(
    '/api/clusters/:id/execute',
    operation({
      id: 'executeCluster',
      tag,
      summary: 'Run a stored script on the hosts of a cluster',
      allow: execute,
      exists,
      body: ClusterExecute,
      answer: ExecutionAnswer,
      errors: ['conflict', 'gone'],
      headers: idempotencyHeader,
      audit: { action: 'task.create', object: 'task' },
    }),
    (request) =>
      tasks.executeCluster(starterOf(request), idOf(request), request.body, idempotencyKeyOf(request)),
  )
}
