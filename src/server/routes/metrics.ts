import type { AppInstance } from '../app.ts'
import { metricsMediaType } from '../metrics/exposition.ts'
import { operation } from './operation.ts'
import type { RouteDependencies } from './routes.ts'

export function metricsRoutes(app: AppInstance, deps: RouteDependencies): void {
  app.get(
    '/metrics',
    operation({
      id: 'getMetrics',
      tag: 'server',
      summary: 'What the server measures of itself, for Prometheus',
      allow: deps.metricsOpen ? { open: true } : { anyUser: true },
      media: { 'text/plain': 'Prometheus exposition format 0.0.4' },
    }),
    async (_request, reply) => reply.type(metricsMediaType).send(await deps.scrape()),
  )
}
