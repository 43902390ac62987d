import { Counter } from './counter.ts'
import type { Family } from './family.ts'
import { Histogram } from './histogram.ts'

const seconds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1]

export interface DiskMetrics {
  families: readonly Family[]
  /** The store's journal was synced. */
  journalSynced: (seconds: number) => void
  /** Output of a task was synced. */
  outputSynced: (seconds: number, bytes: number) => void
}

/** How long the disk lets writes wait, which is the least that an acknowledged write takes. */
export function createDiskMetrics(): DiskMetrics {
  const journal = new Histogram(
    'rsm_journal_fsync_seconds',
    "Time of an fsync of the store's journal.",
    seconds,
    [],
  )
  const output = new Histogram(
    'rsm_output_fsync_seconds',
    "Time of an fsync of a task's output log.",
    seconds,
    [],
  )
  const bytes = new Counter(
    'rsm_output_bytes_total',
    'Output of scripts that became durable since the start.',
    [],
  )
  const [journalTime, outputTime, outputBytes] = [journal.of({}), output.of({}), bytes.of({})]
  return {
    families: [journal, output, bytes],
    journalSynced: (time) => journalTime.observe(time),
    outputSynced(time, size) {
      outputTime.observe(time)
      outputBytes.add(size)
    },
  }
}
