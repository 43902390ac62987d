import { prometheusContentType } from 'prom-client'
import { RsmError } from '../../core/errors.ts'
import { PageOf, PageQuery, Up } from '../../core/protocol/http/common.ts'
import {
  BackupQuery,
  Ready,
  ReadyQuery,
  Server,
  ServerInfo,
  ServerStatus,
} from '../../core/protocol/http/server.ts'
import type { AppInstance } from '../http/app.ts'
import { operation } from '../http/operation.ts'
import { pageOf, slicePage } from '../storage/paging.ts'
import type { RouteDependencies } from './dependencies.ts'

const gzip = 'application/gzip'
const tag = 'server' as const

export function serverRoutes(app: AppInstance, deps: RouteDependencies): void {
  app.get(
    '/api/server',
    operation({
      id: 'getServer',
      tag,
      summary: 'Read the version, the time and the agent intervals',
      allow: { users: 'read' },
      answer: ServerInfo,
    }),
    () => deps.info(),
  )
  app.get(
    '/api/server/status',
    operation({
      id: 'getServerStatus',
      tag,
      summary: 'Read the start time, work held since a restore from a backup, and clock jumps',
      allow: { users: 'read' },
      answer: ServerStatus,
    }),
    () => deps.status(),
  )
  app.get(
    '/api/servers',
    operation({
      id: 'listServers',
      tag,
      summary: 'The servers of this store: version, address, lease, links, tasks and faults of each',
      allow: { users: 'read' },
      query: PageQuery,
      answer: PageOf(Server),
      errors: ['unavailable'],
    }),
    async ({ query }) => {
      const servers = await deps.servers()
      return pageOf(slicePage(servers, query), servers.length, query)
    },
  )
  app.get(
    '/api/server/backup',
    operation({
      id: 'getServerBackup',
      tag,
      summary: 'Back up the store, output, recordings and audit log, without the keys',
      allow: { users: 'administer', session: true },
      query: BackupQuery,
      media: {
        [gzip]: {
          holds:
            'A gzipped tar for `rsm server restore`. It is complete only if the connection closes cleanly.',
          example: '(bytes)',
        },
      },
      errors: ['conflict', 'unavailable'],
      audit: { action: 'server.backup', object: 'server' },
    }),
    async (request, reply) => {
      reply.type(gzip).header('content-disposition', 'attachment; filename="rsm-backup.tar.gz"')
      // HEAD needs only the headers.
      if (request.method === 'HEAD') return reply.send()
      const { stream } = await deps.backup({ withOutput: request.query.withoutOutput !== true })
      return reply.send(stream)
    },
  )
}

export function healthRoutes(app: AppInstance, deps: RouteDependencies): void {
  app.get(
    '/api/health',
    operation({
      id: 'getHealth',
      tag,
      summary: 'Whether the server is alive',
      allow: { open: true },
      always: true,
      answer: Up,
    }),
    () => ({ status: 'UP' }),
  )
  app.get(
    '/api/ready',
    operation({
      id: 'getReady',
      tag,
      summary:
        'Whether the server takes work: not while it starts or stops, its store is read-only or unreachable, or its lease has expired',
      allow: { open: true },
      always: true,
      query: ReadyQuery,
      answer: Ready,
      errors: ['not_found', 'unavailable'],
    }),
    ({ query: { drain } }) => {
      const { reasons, keepsConnections, server } = deps.readiness()
      const code = drain && keepsConnections ? 'not_found' : 'unavailable'
      if (reasons.length > 0)
        throw new RsmError(code, `The server does not accept work just now: ${reasons.join('; ')}`, {
          retryAfter: 5,
          data: { status: 'DOWN', reasons, server },
        })
      return { status: 'UP', server }
    },
  )
}

export function metricsRoutes(app: AppInstance, deps: RouteDependencies): void {
  app.get(
    '/metrics',
    operation({
      id: 'getMetrics',
      tag,
      summary: 'Metrics of the server for Prometheus',
      allow: deps.metricsOpen ? { open: true } : { anyUser: true, lastKnown: true },
      media: {
        'text/plain': {
          holds: 'Prometheus exposition format 0.0.4',
          example: '# TYPE rsm_hosts gauge\nrsm_hosts{status="ONLINE"} 3\n',
        },
      },
    }),
    async (_request, reply) => reply.type(prometheusContentType).send(await deps.scrape()),
  )
}
