import { Cluster, ClusterCreate, ClusterPatch, ClusterQuery } from '../../core/protocol/http/clusters.ts'
import { IdOnly, PageOf } from '../../core/protocol/http/common.ts'
import { ClusterExecute, ExecutionAnswer } from '../../core/protocol/http/tasks.ts'
import { clusterCalls, taskCalls } from '../../core/services.ts'
import type { AppInstance } from '../http/app.ts'
import type { RouteDependencies } from './dependencies.ts'
import { idempotencyHeader, serve } from './serve.ts'

const noun = {
  noun: 'clusters',
  tag: 'clusters',
  read: { users: 'read' },
  write: { users: 'change' },
} as const

export function clusterRoutes(app: AppInstance, { services: { clusters, tasks } }: RouteDependencies): void {
  const calls = { ...clusterCalls, execute: taskCalls.executeCluster }
  serve(app, calls, { ...clusters, execute: tasks.executeCluster }, noun, {
    list: { id: 'listClusters', summary: 'List clusters', query: ClusterQuery, answer: PageOf(Cluster) },
    create: {
      id: 'createCluster',
      summary: 'Create a cluster, of named hosts or by a selector',
      body: ClusterCreate,
      answer: Cluster,
      created: true,
      errors: ['conflict'],
    },
    get: { id: 'getCluster', summary: 'Read a cluster', answer: Cluster },
    update: {
      id: 'updateCluster',
      summary: 'Change a cluster',
      body: ClusterPatch,
      answer: Cluster,
      errors: ['conflict'],
    },
    remove: { id: 'deleteCluster', summary: 'Delete a cluster; its hosts stay', answer: IdOnly },
    execute: {
      id: 'executeCluster',
      summary: 'Run a stored script on the hosts of a cluster',
      allow: { users: 'execute' },
      body: ClusterExecute,
      answer: ExecutionAnswer,
      errors: ['conflict', 'gone'],
      headers: idempotencyHeader,
      audit: { action: 'task.create', object: 'task' },
    },
  })
}
