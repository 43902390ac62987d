import { Readable } from 'node:stream'
import { invalid } from '../../core/errors.ts'
import { AuditEntry, AuditQuery } from '../../core/protocol/http/audit.ts'
import { PageOf } from '../../core/protocol/http/common.ts'
import type { AppInstance } from '../http/app.ts'
import type { RouteDependencies } from './dependencies.ts'
import { operation } from './operation/operation.ts'

const ndjson = 'application/x-ndjson'

export function auditRoutes(app: AppInstance, { audit }: RouteDependencies): void {
  app.get(
    '/api/audit',
    operation({
      id: 'listAudit',
      tag: 'audit',
      summary: 'The audit log: every change, execution, login, terminal and refusal, newest first',
      allow: { users: 'administer' },
      query: AuditQuery,
      answer: PageOf(AuditEntry),
      media: {
        [ndjson]:
          'With Accept: application/x-ndjson: the whole log as it stands on disk, oldest first; takes no filter.',
      },
    }),
    async (request, reply) => {
      if (!(request.headers.accept ?? '').includes(ndjson)) return audit.list(request.query)
      // The log is whole or nothing. Of the parsed query nobody can tell which fields are defaults.
      const asked = [...new Set(new URL(request.url, 'http://localhost').searchParams.keys())]
      if (asked.length > 0)
        throw invalid(asked.map((field) => ({ field, message: `does not go with Accept: ${ndjson}` })))
      reply.type(`${ndjson}; charset=utf-8`)
      return reply.send(Readable.from(audit.raw(), { objectMode: false, highWaterMark: 64 * 1024 }))
    },
  )
}
