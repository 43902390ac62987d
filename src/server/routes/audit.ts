import { Readable } from 'node:stream'
import { invalid } from '../../core/errors.ts'
import { AuditEntry, AuditQuery } from '../../core/protocol/http/audit.ts'
import { PageOf } from '../../core/protocol/http/common.ts'
import type { AppInstance } from '../http/app.ts'
import { operation } from '../http/operation.ts'
import type { RouteDependencies } from './dependencies.ts'

const ndjson = 'application/x-ndjson'
/** Query fields of one way to read the log that the other does not accept. */
const ofPages = ['page', 'size', 'before']
const ofDownloads = ['after']

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
          'With Accept: application/x-ndjson: the log as stored, oldest first, after the entry `after`. Without filters the hash chain is complete, even if lines are damaged.',
      },
    }),
    async (request, reply) => {
      // The parsed query does not show which fields are defaults.
      const asked = [...new Set(new URL(request.url, 'http://localhost').searchParams.keys())]
      const isRaw = (request.headers.accept ?? '').includes(ndjson)
      const foreign = asked.filter((field) => (isRaw ? ofPages : ofDownloads).includes(field))
      if (foreign.length > 0)
        throw invalid(
          foreign.map((field) => ({
            field,
            message: isRaw ? `cannot be combined with Accept: ${ndjson}` : `requires Accept: ${ndjson}`,
          })),
        )
      const { page: _page, size: _size, before: _before, ...which } = request.query
      if (!isRaw) return audit.list(request.query)
      reply.type(`${ndjson}; charset=utf-8`)
      return reply.send(Readable.from(audit.raw(which), { objectMode: false, highWaterMark: 64 * 1024 }))
    },
  )
}
