import { PageOf, PageQuery } from '../../core/protocol/http/common.ts'
import { BackupQuery, Server, ServerInfo, ServerStatus } from '../../core/protocol/http/server.ts'
import type { AppInstance } from '../http/app.ts'
import { operation } from '../http/operation.ts'
import { pageOf, slicePage } from '../storage/paging.ts'
import type { RouteDependencies } from './dependencies.ts'

const gzip = 'application/gzip'

export function serverRoutes(app: AppInstance, deps: RouteDependencies): void {
  app.get(
    '/api/server',
    operation({
      id: 'getServer',
      tag: 'server',
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
      tag: 'server',
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
      tag: 'server',
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
      tag: 'server',
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
