import type { AgreedClock } from '../../disk/agreed-clock.ts'
import { systemActor } from '../audit/actor.ts'
import { type Clock, isoTime } from '../clock.ts'
import type { Engine } from '../engine/engine.ts'
import type { AuditLog } from '../seams/audit-log.ts'
import type { ControlOperations } from './control.ts'

interface Parts {
  agreed: AgreedClock
  engine: Pick<Engine, 'confirmRestore'>
  audit: Pick<AuditLog, 'append'>
  clock: Clock
}

/** What each operation of the control socket does: a line each, whose name and types are in core/protocol/control.ts. */
export function controlOperations({ agreed, engine, audit, clock }: Parts): ControlOperations {
  return {
    'confirm-clock': async () => {
      const serverTime = isoTime(clock.now())
      const { doubt } = agreed
      const detail = { serverTime, ...doubt }
      await audit.append({
        actor: systemActor,
        ip: null,
        action: 'clock.confirm',
        object: null,
        outcome: 'SUCCESS',
        detail,
      })
      await agreed.confirm()
      return { serverTime, doubt }
    },
    'confirm-restore': async ({ cancelPending }) => {
      const confirmed = await engine.confirmRestore(cancelPending)
      await audit.append({
        actor: systemActor,
        ip: null,
        action: 'restore.confirm',
        object: null,
        outcome: 'SUCCESS',
        detail: { ...confirmed },
      })
      return confirmed
    },
  }
}
