import type { AuditEntry, AuditFacts } from '../../core/audit.ts'
import { type Clock, isoTime, repeat } from '../../disk/clock.ts'
import type { Log } from '../../disk/log.ts'
import { bounded } from '../storage/audit-entry.ts'
import type { AuditEvent, AuditLog } from '../storage/ports/audit-log.ts'

/** Limit of pending entries, each of a few KiB at most. */
const mostPending = 10_000
const retryInterval = 2000

/** Audit entries of completed changes; retries entries that the log does not accept at once. */
export interface AuditOutbox extends Pick<AuditLog, 'append' | 'refusal'> {
  /** Writes the pending entries; called by a timer and by tests. */
  flush(): Promise<void>
  close(): Promise<void>
}

export function createAuditOutbox({
  audit,
  kept = (event) => event,
  clock,
  log,
}: {
  audit: Pick<AuditLog, 'append' | 'refusal'>
  /** Removes parts of an event that must not be written; keeps everything by default. */
  kept?: ((event: AuditEvent) => AuditEvent) | undefined
  clock: Pick<Clock, 'now'>
  log: Pick<Log, 'warn' | 'error'>
}): AuditOutbox {
  const pending: AuditFacts[] = []

  /** Logs the entry, so that it is not lost if the server ends before it is written. */
  function retain(event: AuditEvent, error: unknown): void {
    const entry = bounded({ ...event, detail: { late: true, ...event.detail } })
    const reason = error instanceof Error ? error.message : String(error)
    log.warn({ entry, reason }, 'could not write an audit entry; retrying')
    if (pending.length < mostPending) pending.push(entry)
  }

  async function writeAll(): Promise<void> {
    for (let next = pending[0]; next && audit.refusal === null; next = pending[0]) {
      await audit.append(next)
      pending.shift()
    }
  }

  const flushing = repeat(retryInterval, writeAll, () => undefined)

  return {
    async append(given): Promise<AuditEntry> {
      const event = { ...kept(given), at: given.at ?? isoTime(clock.now()) }
      try {
        return await audit.append(event)
      } catch (error) {
        retain(event, error)
        throw error
      }
    },
    get refusal() {
      return audit.refusal
    },
    flush: () => flushing.now(),
    async close() {
      void flushing.now()
      await flushing.stop()
      if (pending.length > 0)
        log.error(
          { entries: pending.length },
          'audit entries were not written before the stop; this log has them',
        )
    },
  }
}
