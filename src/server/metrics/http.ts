import { Counter, Histogram, type Registry } from 'prom-client'

/** Other methods count as `other`, because clients must not determine the number of series. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const seconds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5]

export interface Answered {
  method: string
  /** Route template, never the path; undefined if no route matches. */
  route: string | undefined
  status: number
  seconds: number
}

export interface HttpMetrics {
  answered: (request: Answered) => void
}

/** Requests by method, route template and status; the application bounds the number of series. */
export function createHttpMetrics(registry: Registry): HttpMetrics {
  const labels = { labelNames: ['method', 'route', 'status'] as const, registers: [registry] }
  const total = new Counter({
    name: 'rsm_http_requests_total',
    help: 'HTTP requests answered.',
    ...labels,
  })
  const duration = new Histogram({
    name: 'rsm_http_request_duration_seconds',
    help: 'Time from request to answer; a followed stream counts when it ends.',
    buckets: seconds,
    ...labels,
  })
  return {
    answered({ method, route = 'unknown', status, seconds }) {
      const series = { method: methods.has(method) ? method : 'other', route, status }
      total.inc(series)
      duration.observe(series, seconds)
    },
  }
}
