import { type Count, Counter } from './counter.ts'
import type { Family } from './family.ts'
import { type Distribution, Histogram } from './histogram.ts'

/** Others count as `other`: what is sent must not decide how many series there are. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const seconds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5]

/** A request that has been answered. */
export interface Answered {
  method: string
  /** The template, never the path; undefined where no route fits. */
  route: string | undefined
  status: number
  seconds: number
}

export interface HttpMetrics {
  families: readonly Family[]
  answered: (request: Answered) => void
}

/** Requests by method, template of the route and status: as many series as the application has of them. */
export function createHttpMetrics(): HttpMetrics {
  const labels = ['method', 'route', 'status'] as const
  const total = new Counter('rsm_http_requests_total', 'HTTP requests answered.', labels)
  const duration = new Histogram(
    'rsm_http_request_duration_seconds',
    'Time from request to answer; a followed stream counts when it ends.',
    seconds,
    labels,
  )
  type Instruments = { total: Count; duration: Distribution }
  const known = new Map<string, Map<string, Map<number, Instruments>>>()

  function resolve(method: string, route: string, status: number): Instruments {
    const values = { method, route, status: String(status) }
    return { total: total.of(values), duration: duration.of(values) }
  }

  return {
    families: [total, duration],
    answered(request) {
      const method = methods.has(request.method) ? request.method : 'other'
      const route = request.route ?? 'unknown'
      const byMethod = orNew(known, route, () => new Map<string, Map<number, Instruments>>())
      const byStatus = orNew(byMethod, method, () => new Map<number, Instruments>())
      const instruments = orNew(byStatus, request.status, () => resolve(method, route, request.status))
      instruments.total.add()
      instruments.duration.observe(request.seconds)
    },
  }
}

function orNew<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key)
  if (value === undefined) {
    value = make()
    map.set(key, value)
  }
  return value
}
