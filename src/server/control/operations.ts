import type { AuditDetail } from '../../core/protocol/http/audit.ts'
import type { AgreedClock } from '../../disk/agreed-clock.ts'
import { systemActor } from '../audit/actor.ts'
import { type Clock, isoTime } from '../clock.ts'
import type { Engine } from '../engine/engine.ts'
import type { BeginBackup } from '../keep/backups.ts'
import type { AuditLog } from '../seams/audit-log.ts'
import type { Keep } from '../seams/keep.ts'
import type { ControlOperations } from './control.ts'

interface Parts {
  agreed: AgreedClock
  engine: Pick<Engine, 'confirmRestore'>
  audit: Pick<AuditLog, 'append'>
  clock: Clock
  backup: BeginBackup
  keep: Pick<Keep, 'compact'>
}

/** What each operation of the control socket does: a line each, whose name and types are in core/protocol/control.ts. */
export function controlOperations({ agreed, engine, audit, clock, backup, keep }: Parts): ControlOperations {
  const record = (action: string, detail: AuditDetail) =>
    audit.append({ actor: systemActor, ip: null, action, object: null, outcome: 'SUCCESS', detail })
  return {
    'confirm-clock': async () => {
      const serverTime = isoTime(clock.now())
      const { doubt } = agreed
      const detail = { serverTime, ...doubt }
      await record('clock.confirm', detail)
      await agreed.confirm()
      return { serverTime, doubt }
    },
    'confirm-restore': async ({ cancelPending }) => {
      const confirmed = await engine.confirmRestore(cancelPending)
      await record('restore.confirm', { ...confirmed })
      return confirmed
    },
    compact: () => keep.compact(),
    async backup({ withOutput, passphrase }) {
      const { stream } = await backup({ withOutput, passphrase })
      const detail = { withOutput, withKeys: passphrase !== undefined }
      await record('server.backup', detail).catch((error: unknown) => {
        stream.destroy()
        throw error
      })
      return stream
    },
  }
}
