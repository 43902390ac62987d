import { collectDefaultMetrics, type Registry } from 'prom-client'

/** Not worth their cost, or named against Prometheus' own rules (a gauge ending in `_total`). */
const unwanted = [
  'nodejs_active_handles',
  'nodejs_active_handles_total',
  'nodejs_active_requests',
  'nodejs_active_requests_total',
  'nodejs_active_resources',
  'nodejs_active_resources_total',
  'nodejs_heap_space_size_total_bytes',
  'nodejs_heap_space_size_used_bytes',
  'nodejs_heap_space_size_available_bytes',
]

/** CPU, memory, files, event loop and garbage collection of this process: from now on they are watched, at a price. */
export function watchProcess(registry: Registry): void {
  collectDefaultMetrics({ register: registry })
  for (const name of unwanted) registry.removeSingleMetric(name)
}
