import { RsmError } from '../../core/errors.ts'
import { Up } from '../../core/protocol/http/common.ts'
import { Ready, ReadyQuery } from '../../core/protocol/http/server.ts'
import type { AppInstance } from '../http/app.ts'
import { operation } from '../http/operation.ts'
import type { RouteDependencies } from './dependencies.ts'

const allow = { open: true } as const
const always = true
const tag = 'server' as const

export function healthRoutes(app: AppInstance, deps: RouteDependencies): void {
  app.get(
    '/api/health',
    operation({ id: 'getHealth', tag, summary: 'Whether the server is alive', allow, always, answer: Up }),
    () => ({ status: 'UP' }),
  )
  app.get(
    '/api/ready',
    operation({
      id: 'getReady',
      tag,
      summary:
        'Whether the server takes work: not while it starts or stops, its store is read-only or unreachable, or its lease has expired',
      allow,
      always,
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
