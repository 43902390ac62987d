import type { LocalFacts } from '../local-facts.ts'
import { createDiskMetrics, type DiskMetrics } from './disk.ts'
import { createExposition } from './exposition.ts'
import { type Counted, createGauges } from './gauges.ts'
import { createHttpMetrics, type HttpMetrics } from './http.ts'
import { createWorkMetrics } from './work.ts'

/** What one server measures of itself, for Prometheus (contract §3 `GET /metrics`). */
export interface ServerMetrics {
  answered: HttpMetrics['answered']
  journalSynced: DiskMetrics['journalSynced']
  outputSynced: DiskMetrics['outputSynced']
  /** Answers what gives the text of a scrape. Called once, when all that is counted stands. */
  exposition(counted: Counted): () => Promise<string>
}

export function createServerMetrics(facts: LocalFacts): ServerMetrics {
  const http = createHttpMetrics()
  const disk = createDiskMetrics()
  const work = createWorkMetrics(facts)
  return {
    answered: http.answered,
    journalSynced: disk.journalSynced,
    outputSynced: disk.outputSynced,
    exposition: (counted) =>
      createExposition([...createGauges(counted), ...work.families, ...disk.families, ...http.families]),
  }
}
