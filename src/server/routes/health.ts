import { RsmError } from '../../core/errors.ts'
import { Up } from '../../core/protocol/http/common.ts'
import type { AppInstance } from '../http/app.ts'
import type { RouteDependencies } from './dependencies.ts'
import { operation } from './operation/operation.ts'

const allow = { open: true } as const
const always = true
const tag = 'server' as const

export function healthRoutes(app: AppInstance, deps: RouteDependencies): void {
  app.get(
    '/api/health',
    operation({ id: 'getHealth', tag, summary: 'Whether the server lives', allow, always, answer: Up }),
    () => ({ status: 'UP' }),
  )
  app.get(
    '/api/ready',
    operation({
      id: 'getReady',
      tag,
      summary: 'Whether the server takes work: not while starting, draining, or when its disk refuses writes',
      allow,
      always,
      answer: Up,
      errors: ['unavailable'],
    }),
    () => {
      if (!deps.ready())
        throw new RsmError('unavailable', 'The server takes no work just now', { retryAfter: 5 })
      return { status: 'UP' }
    },
  )
}
