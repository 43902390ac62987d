import type { ClockConfirmed } from '../../core/protocol/control.ts'
import type { AgreedClock } from '../../disk/agreed-clock.ts'
import { type Clock, isoTime } from '../../disk/clock.ts'
import { recordForSystem } from '../storage/audit-entry.ts'
import type { AuditLog } from '../storage/ports/audit-log.ts'

interface Parts {
  agreed: AgreedClock
  audit: Pick<AuditLog, 'append'>
  clock: Clock
}

/** Confirms the clock on request of a person; audited before it takes effect. */
export async function confirmClock({ agreed, audit, clock }: Parts): Promise<ClockConfirmed> {
  const serverTime = isoTime(clock.now())
  const { doubt } = agreed
  await recordForSystem(audit, 'clock.confirm', { serverTime, ...doubt })
  await agreed.confirm()
  return { serverTime, doubt }
}
