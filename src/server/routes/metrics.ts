import { prometheusContentType } from 'prom-client'
import type { AppInstance } from '../http/app.ts'
import { operation } from '../http/operation.ts'
import type { RouteDependencies } from './dependencies.ts'

export function metricsRoutes(app: AppInstance, deps: RouteDependencies): void {
  app.get(
    '/metrics',
    operation({
      id: 'getMetrics',
      tag: 'server',
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
