import { Registry } from 'prom-client'
import type { LocalFacts } from '../storage/local-facts.ts'
import { createDiskMetrics, type DiskMetrics } from './disk.ts'
import { type Counted, registerGauges } from './gauges.ts'
import { createHttpMetrics, type HttpMetrics } from './http.ts'
import { watchProcess } from './process.ts'
import { countWork } from './work.ts'

/** What one server measures of itself, for Prometheus (contract §3 `GET /metrics`). */
export interface ServerMetrics {
  answered: HttpMetrics['answered']
  journalSynced: DiskMetrics['journalSynced']
  outputSynced: DiskMetrics['outputSynced']
  /** Answers what gives the text of a scrape. Called once, when all that is counted stands. */
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
        // Servers that nobody scrapes do not pay for it.
        if (!isWatched) watchProcess(registry)
        isWatched = true
        return registry.metrics()
      }
    },
  }
}
