import type { Metric } from 'prom-client'
import type { Family } from './family.ts'

/** Media type of the text (Prometheus exposition format 0.0.4). */
export const metricsMediaType = 'text/plain; version=0.0.4; charset=utf-8'

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

/** A family as prom-client's registry asks for it. */
function asMetric(family: Family): Metric {
  const { name, help, type } = family
  const metric = {
    name,
    help,
    type,
    aggregator: 'sum',
    async get() {
      const values = (await family.samples()).map(({ suffix = '', labels, value }) => ({
        metricName: name + suffix,
        labels,
        value,
      }))
      return { name, help, type, aggregator: 'sum', values }
    },
  }
  return metric as unknown as Metric
}

/**
 * Answers the text of a scrape. prom-client is loaded by the first one, as its import takes 50 ms of a start: it writes
 * the text and adds what it knows of the process (CPU, memory, files, event loop, garbage collection).
 */
export function createExposition(families: readonly Family[]): () => Promise<string> {
  async function open() {
    // By `default`: no bundler sees the names of a CommonJS module that is imported late.
    const { Registry, collectDefaultMetrics } = (await import('prom-client')).default
    const registry = new Registry()
    for (const family of families) registry.registerMetric(asMetric(family))
    collectDefaultMetrics({ register: registry })
    for (const name of unwanted) registry.removeSingleMetric(name)
    return registry
  }
  let registry: ReturnType<typeof open> | undefined
  return async () => {
    registry ??= open()
    return (await registry).metrics()
  }
}
