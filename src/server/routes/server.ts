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
  app.get(
    '/api/servers',
    operation({
      id: 'listServers',
      tag: 'server',
      summary:
        'The servers of this store: version, address, lease, links and tasks of each, and what is wrong with it',
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
      summary: 'A backup of its store, output, recordings and audit log, never with its keys',
      allow: { users: 'administer', session: true },
      query: BackupQuery,
      media: {
        [gzip]: {
          holds:
            'A tar that gzip has compressed, for `rsm server restore`. It is whole if the connection ends in order: what breaks off is cut off.',
          example: '(bytes)',
        },
      },
      errors: ['conflict', 'unavailable'],
      audit: { action: 'server.backup', object: 'server' },
    }),
    async (request, reply) => {
      reply.type(gzip).header('content-disposition', 'attachment; filename="rsm-backup.tar.gz"')
      // To HEAD the headers are the whole answer.
      if (request.method === 'HEAD') return reply.send()
      const { stream } = await deps.backup({ withOutput: request.query.withoutOutput !== true })
      return reply.send(stream)
    },
  )
}
