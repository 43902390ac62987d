import type { AppInstance } from '../app.ts'
import { metricsMediaType } from '../metrics/exposition.ts'
import type { RouteDependencies } from './routes.ts'

export function metricsRoutes(app: AppInstance, deps: RouteDependencies): void {
  app.get(
    '/metrics',
    {
      config: { allow: deps.metricsOpen ? { open: true } : { anyUser: true } },
      schema: { summary: 'What the server measures of itself, for Prometheus' },
    },
    async (_request, reply) => reply.type(metricsMediaType).send(await deps.scrape()),
  )
}
