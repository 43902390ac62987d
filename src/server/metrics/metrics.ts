import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client'
import type { LocalFacts } from '../storage/local-facts.ts'
import { type Counted, registerGauges } from './gauges.ts'
import { createHttpMetrics, type HttpMetrics } from './http.ts'
import { countWork } from './work.ts'

/** Prometheus metrics of one server (contract §3 `GET /metrics`). */
export interface ServerMetrics {
  answered: HttpMetrics['answered']
  journalSynced: DiskMetrics['journalSynced']
  outputSynced: DiskMetrics['outputSynced']
  /** Returns a function that renders a scrape. Call once, when everything it counts exists. */
  exposition(counted: Counted): () => Promise<string>
}

export function createServerMetrics(facts: LocalFacts): ServerMetrics {
  const registry = new Registry()
  const { answered } = createHttpMetrics(registry)
  countWork(registry, facts)
  return {
    answered,
    ...createDiskMetrics(registry),
    exposition(counted) {
      registerGauges(registry, counted)
      let isWatched = false
      return () => {
        // Collected from the first scrape on, because it has a cost.
        if (!isWatched) watchProcess(registry)
        isWatched = true
        return registry.metrics()
      }
    },
  }
}

/** Metrics that are not worth their cost, or break Prometheus' naming rules (a gauge ending in `_total`). */
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

/** Starts collecting CPU, memory, files, event loop and garbage collection of this process. */
function watchProcess(registry: Registry): void {
  collectDefaultMetrics({ register: registry })
  for (const name of unwanted) registry.removeSingleMetric(name)
}

const syncBuckets = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1]

interface DiskMetrics {
  journalSynced: (seconds: number) => void
  outputSynced: (seconds: number, bytes: number) => void
}

/** Measures fsyncs, the minimum latency of an acknowledged write. */
function createDiskMetrics(registry: Registry): DiskMetrics {
  const registers = [registry]
  const journal = new Histogram({
    name: 'rsm_journal_fsync_seconds',
    help: "Time of an fsync of the store's journal.",
    buckets: syncBuckets,
    registers,
  })
  const output = new Histogram({
    name: 'rsm_output_fsync_seconds',
    help: "Time of an fsync of a task's output log.",
    buckets: syncBuckets,
    registers,
  })
  const bytes = new Counter({
    name: 'rsm_output_bytes_total',
    help: 'Output of scripts that became durable since the start.',
    registers,
  })
  return {
    journalSynced: (time) => journal.observe(time),
    outputSynced(time, size) {
      output.observe(time)
      bytes.inc(size)
    },
  }
}
