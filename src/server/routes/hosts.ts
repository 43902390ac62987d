import { Enrollment, EnrollmentCreate, EnrollmentCreated, Parted } from '../../core/protocol/http/agent.ts'
import { HostSelect } from '../../core/protocol/http/clusters.ts'
import { IdOnly, NamedQuery, PageOf, PageQuery } from '../../core/protocol/http/common.ts'
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
import { enrollmentCalls, hostCalls, taskCalls } from '../../core/services.ts'
import type { AppInstance } from '../http/app.ts'
import type { RouteDependencies } from './dependencies.ts'
import { idempotencyHeader, serve } from './serve.ts'

const read = { users: 'read' } as const
const change = { users: 'change' } as const
const administer = { users: 'administer' } as const
const lasting = { ...administer, lasting: true } as const

export function hostRoutes(app: AppInstance, { services: { hosts, tasks } }: RouteDependencies): void {
  const calls = { ...hostCalls, installAgent: taskCalls.installAgent }
  const service = { ...hosts, installAgent: tasks.installAgent }
  serve(
    app,
    calls,
    service,
    { noun: 'hosts', tag: 'hosts', read, write: change },
    {
      list: { id: 'listHosts', summary: 'List hosts', query: HostQuery, answer: PageOf(Host) },
      create: {
        id: 'createHost',
        summary: 'Create a host',
        body: HostCreate,
        answer: Host,
        created: true,
        errors: ['conflict'],
      },
      select: {
        id: 'selectHosts',
        summary: 'List the hosts of a target, in natural order of names',
        body: HostSelect,
        query: PageQuery,
        answer: PageOf(Host),
      },
      get: { id: 'getHost', summary: 'Read a host', answer: Host },
      metrics: {
        id: 'getHostMetrics',
        summary: "Read a host's metrics of up to 7 days, down-sampled",
        query: HostMetricsQuery,
        answer: HostMetrics,
      },
      update: {
        id: 'updateHost',
        summary: 'Change a host; its hostKey requires ADMIN',
        body: HostPatch,
        answer: Host,
        errors: ['conflict'],
      },
      remove: {
        id: 'deleteHost',
        summary: 'Delete a host',
        allow: { users: 'removeHosts' },
        query: HostRemoveQuery,
        answer: Parted,
        errors: ['conflict'],
      },
      installAgent: {
        id: 'installAgent',
        summary: 'Install the agent over SSH with the stored credentials of the host: a task of type INSTALL',
        allow: lasting,
        body: HostInstall,
        answer: ExecutionAnswer,
        errors: ['conflict'],
        headers: idempotencyHeader,
        audit: { action: 'host.install', object: 'host' },
      },
      revokeAgent: {
        id: 'revokeAgent',
        summary: "Revoke a host's agent token; its link closes at once",
        allow: administer,
        answer: Parted,
        audit: { action: 'agent.revoke', object: 'host' },
      },
    },
  )
}

export function enrollmentRoutes(app: AppInstance, { services: { enrollments } }: RouteDependencies): void {
  const noun = { noun: 'enrollments', tag: 'enrollment tokens', read: administer, write: lasting } as const
  serve(app, enrollmentCalls, enrollments, noun, {
    list: {
      id: 'listEnrollmentTokens',
      summary: 'List enrollment tokens',
      query: NamedQuery,
      answer: PageOf(Enrollment),
    },
    create: {
      id: 'createEnrollmentToken',
      summary: 'Create an enrollment token; its text is shown only once',
      body: EnrollmentCreate,
      answer: EnrollmentCreated,
      created: true,
    },
    remove: {
      id: 'deleteEnrollmentToken',
      summary: 'Delete an enrollment token; hosts that it enrolled stay',
      answer: IdOnly,
    },
  })
}
