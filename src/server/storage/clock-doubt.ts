import { type ClockDoubt, doubtSentence } from '../../core/clock/agreed-time.ts'
import type { Log } from '../../disk/log.ts'
import { systemActor } from './audit/entry.ts'
import type { AuditLog } from './ports/audit-log.ts'

interface Parts {
  audit: Pick<AuditLog, 'append'>
  log: Log
}

/** Reports to log and audit log when doubt about the clock begins or ends (null). */
export function reportDoubt({ audit, log }: Parts): (doubt: ClockDoubt | null) => void {
  return (doubt) => {
    const message = doubt ? doubtSentence(doubt) : 'the clock is trusted'
    log[doubt ? 'error' : 'info']({ ...doubt }, message)
    audit
      .append({
        actor: systemActor,
        ip: null,
        action: doubt ? 'clock.doubt' : 'clock.agree',
        object: null,
        outcome: doubt ? 'FAILED' : 'SUCCESS',
        detail: { ...doubt, message },
      })
      .catch((error: unknown) => log.warn({ err: error }, 'could not write an audit entry'))
  }
}
