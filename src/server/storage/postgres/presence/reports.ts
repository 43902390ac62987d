import type { Metrics } from '../../../../core/hosts/host.ts'
import { measuresNamed } from '../../../../core/hosts/host-status.ts'
import type { Log } from '../../../../disk/log.ts'
import type { Database } from '../connection/database.ts'
import type { Fleet } from './fleet.ts'
import { readReports } from './table.ts'

/** Milliseconds for which what was read is shown: others write it as often. */
const readFor = 5_000
/** More are not looked at by people: what judges so many needs no reports. */
const mostRead = 1_000

/** The newest reports of hosts that bring theirs to other servers. */
export interface Reports {
  /** Reads those of these hosts that may be newer elsewhere; where the store is away, what is known stays. */
  read(hostIds: readonly number[]): Promise<void>
}

export function createReports({ hosts, elsewhere, options }: Fleet, database: Database, log: Log): Reports {
  const { clock } = options
  /** Monotonic milliseconds. */
  const readAt = new Map<number, number>()

  function take(hostId: number, at: number, text: string): void {
    const known = hosts.entries.get(hostId)
    if (!known || at <= known.metricsAt) return
    known.metrics = JSON.parse(text) as Metrics
    known.metricsAt = at
    known.high = measuresNamed(known.metrics, known.load.warns)
    hosts.judge(hostId)
  }

  return {
    async read(hostIds) {
      if (hostIds.length > mostRead) return
      const now = clock.monotonic()
      const old = hostIds.filter(
        (hostId) =>
          elsewhere.has(hostId) && now - (readAt.get(hostId) ?? Number.NEGATIVE_INFINITY) >= readFor,
      )
      if (old.length === 0) return
      for (const hostId of old) readAt.set(hostId, now)
      try {
        for (const { hostId, at, metrics } of await readReports(database, old)) take(hostId, at, metrics)
      } catch (error) {
        log.debug({ err: error }, 'the newest reports of hosts could not be read')
      }
    },
  }
}
