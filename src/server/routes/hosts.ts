import { PageOf } from '../../core/protocol/http/common.ts'
import { Parted } from '../../core/protocol/http/enrollments.ts'
import {
  Host,
  HostCreate,
  HostMetrics,
  HostMetricsQuery,
  HostPatch,
  HostQuery,
  HostRemoveQuery,
} from '../../core/protocol/http/hosts.ts'
import { ExecutionAnswer, HostInstall } from '../../core/protocol/http/tasks.ts'
import type { AppInstance } from '../http/app.ts'
import { userOf } from '../http/auth.ts'
import { idOf, operation } from '../http/operation.ts'
import { demand } from '../storage/ports/caller.ts'
import type { RouteDependencies } from './dependencies.ts'
import { idempotencyHeader, idempotencyKeyOf, starterOf } from './starting.ts'

const read = { users: 'read' } as const
const change = { users: 'change' } as const
const remove = { users: 'removeHosts' } as const
const administer = { users: 'administer' } as const
const exists = 'hosts' as const
const tag = 'hosts' as const

export function hostRoutes(app: AppInstance, { services: { hosts, tasks } }: RouteDependencies): void {
  app.get(
    '/api/hosts',
    operation({
      id: 'listHosts',
      tag,
      summary: 'List hosts',
      allow: read,
      query: HostQuery,
      answer: PageOf(Host),
    }),
    (request) => hosts.list(request.query),
  )
  app.post(
    '/api/hosts',
    operation({
      id: 'createHost',
      tag,
      summary: 'Create a host',
      allow: change,
      body: HostCreate,
      answer: Host,
      created: true,
      errors: ['conflict'],
      audit: { action: 'host.create', object: 'host' },
    }),
    (request) => hosts.create(request.body),
  )
  app.get(
    '/api/hosts/:id',
    operation({ id: 'getHost', tag, summary: 'Read a host', allow: read, exists, answer: Host }),
    (request) => hosts.get(idOf(request)),
  )
  app.get(
    '/api/hosts/:id/metrics',
    operation({
      id: 'getHostMetrics',
      tag,
      summary: "Read a host's metrics of up to 7 days, down-sampled",
      allow: read,
      exists,
      query: HostMetricsQuery,
      answer: HostMetrics,
    }),
    (request) => hosts.metrics(idOf(request), request.query),
  )
  app.patch(
    '/api/hosts/:id',
    operation({
      id: 'updateHost',
      tag,
      summary: 'Change a host; its hostKey requires ADMIN',
      allow: change,
      exists,
      body: HostPatch,
      answer: Host,
      errors: ['conflict'],
      audit: { action: 'host.update', object: 'host' },
    }),
    (request) => {
      // Whom the server trusts with a host's credentials.
      if (request.body.hostKey !== undefined) demand(userOf(request), 'administer')
      return hosts.update(idOf(request), request.body)
    },
  )
  app.delete(
    '/api/hosts/:id',
    operation({
      id: 'deleteHost',
      tag,
      summary: 'Delete a host',
      allow: remove,
      exists,
      query: HostRemoveQuery,
      answer: Parted,
      errors: ['conflict'],
      usesReserve: true,
      audit: { action: 'host.delete', object: 'host' },
    }),
    (request) => hosts.remove(idOf(request), { force: request.query.force ?? false }),
  )
  app.post(
    '/api/hosts/:id/install-agent',
    operation({
      id: 'installAgent',
      tag,
      summary: 'Install the agent over SSH with the stored credentials of the host: a task of type INSTALL',
      allow: { ...administer, lasting: true },
      exists,
      body: HostInstall,
      answer: ExecutionAnswer,
      errors: ['conflict'],
      headers: idempotencyHeader,
      audit: { action: 'host.install', object: 'host' },
    }),
    (request) =>
      tasks.installAgent(starterOf(request), idOf(request), request.body, idempotencyKeyOf(request)),
  )
  app.delete(
    '/api/hosts/:id/agent',
    operation({
      id: 'revokeAgent',
      tag,
      summary: "Revoke a host's agent token; its link closes at once",
      allow: administer,
      exists,
      answer: Parted,
      usesReserve: true,
      audit: { action: 'agent.revoke', object: 'host' },
    }),
    (request) => hosts.revokeAgent(idOf(request)),
  )
}
