import { Counter, Histogram, type Registry } from 'prom-client'

const seconds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1]

export interface DiskMetrics {
  /** The store's journal was synced. */
  journalSynced: (seconds: number) => void
  /** Output of a task was synced. */
  outputSynced: (seconds: number, bytes: number) => void
}

/** How long the disk lets writes wait, which is the least that an acknowledged write takes. */
export function createDiskMetrics(registry: Registry): DiskMetrics {
  const registers = [registry]
  const journal = new Histogram({
    name: 'rsm_journal_fsync_seconds',
    help: "Time of an fsync of the store's journal.",
    buckets: seconds,
    registers,
  })
  const output = new Histogram({
    name: 'rsm_output_fsync_seconds',
    help: "Time of an fsync of a task's output log.",
    buckets: seconds,
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
