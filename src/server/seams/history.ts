import type { Metrics } from '../../core/host.ts'
import type { Age } from '../../disk/agreed-clock.ts'

/** How long history is kept, in milliseconds (contract §3: 7 days). */
export const keptFor = 7 * 24 * 3600_000

/**
 * Metrics of hosts over time. Not durable as the store is: what came in the last seconds before a crash may be lost
 * (contract §1: heartbeats and metrics are the exception).
 */
export interface History {
  /**
   * Never fails and never waits. Reports of a buffer that is being sent go to their own time (contract §6); a timestamp
   * more than a minute ahead or older than `keptFor` counts as now, as an agent's clock is not trusted (contract §3).
   */
  append(hostId: number, metrics: Metrics): void
  /** Samples from `from` to `to` (milliseconds since the epoch, both included), in no promised order. */
  read(hostId: number, from: number, to: number): AsyncIterable<Metrics>
  /** Removes all of a host; never rejects. */
  forget(hostId: number): Promise<void>
  /** Removes days that ended more than `keptFor` before `now`. */
  sweep(age: Age): Promise<void>
  /** Writes what waits. */
  close(): Promise<void>
}
