import type { AuditDetail } from '../../../core/audit.ts'
import { RsmError } from '../../../core/errors.ts'
import type { Server, ServerStatus } from '../../../core/protocol/http/server.ts'
import type { AgreedClock } from '../../../disk/agreed-clock.ts'
import { type Clock, isoTime } from '../../../disk/clock.ts'
import type { LeveledLog } from '../../../disk/log.ts'
import { withReserve } from '../../../disk/reserve.ts'
import type { Passwords } from '../../access/passwords.ts'
import type { HandedOut } from '../../agents/releases/handed-out.ts'
import { recordForSystem } from '../../storage/audit-entry.ts'
import type { BeginBackup } from '../../storage/backup/backup.ts'
import type { AuditLog } from '../../storage/ports/audit-log.ts'
import type { Shared } from '../../storage/ports/cluster.ts'
import type { Hints } from '../../storage/ports/hints.ts'
import type { StoreMaintenance } from '../../storage/ports/maintenance.ts'
import type { Store } from '../../storage/ports/store.ts'
import type { Engine } from '../../tasks/engine.ts'
import { confirmClock } from '../confirm-clock.ts'
import type { RemoveOld } from '../housekeeping/retention.ts'
import { resetPassword } from '../reset-password.ts'
import type { ControlOperations } from './control.ts'

interface Parts {
  agreed: AgreedClock
  engine: Pick<Engine, 'confirmRestore'>
  audit: Pick<AuditLog, 'append' | 'refusal'>
  clock: Clock
  backup: BeginBackup
  maintenance: Pick<StoreMaintenance, 'compact'>
  removeOld: RemoveOld
  handedOut: Pick<HandedOut, 'releases'>
  store: Store
  passwords: Pick<Passwords, 'hash'>
  hints: Pick<Hints, 'publish'>
  log: LeveledLog
  shared: Shared | null
  status(): Promise<ServerStatus>
  servers(): Promise<Server[]>
  ready(): boolean
  madeFirstUser(): boolean | null
}

function nullWhereUnavailable(error: unknown): null {
  if (error instanceof RsmError && error.code === 'unavailable') return null
  throw error
}

/** Operations of the control socket; names and types are in core/protocol/control.ts. */
export function controlOperations(parts: Parts): ControlOperations {
  const { agreed, engine, audit, clock, backup, maintenance, store, shared, passwords, hints, log } = parts
  const { releases } = parts.handedOut
  const record = (action: string, detail: AuditDetail) => recordForSystem(audit, action, detail)
  return {
    'confirm-clock': () => confirmClock({ agreed, audit, clock }),
    'confirm-restore': async ({ cancelPending }) => {
      const confirmed = await engine.confirmRestore(cancelPending)
      await record('restore.confirm', { ...confirmed })
      return confirmed
    },
    compact: () => maintenance.compact(),
    retention: ({ dryRun }) =>
      withReserve(async () => {
        const old = await parts.removeOld({ dryRun })
        const { byAge, bySize, terminals } = old
        if (!dryRun)
          await record('server.retention', {
            tasksByAge: byAge.tasks,
            tasksBySize: bySize.tasks,
            terminals: terminals.sessions,
          })
        return old
      }),
    async 'reset-password'(input) {
      const at = isoTime(clock.now())
      const reset = () => resetPassword({ store, passwords, audit, at }, input)
      const { ended, ...done } = await withReserve(reset)
      for (const tokenId of ended) hints.publish('tokenEnded', { id: tokenId })
      return done
    },
    async status() {
      // Status must work for troubleshooting without the store.
      const ifReached = <T>(value: Promise<T>) => value.catch(nullWhereUnavailable)
      const count = async (found: Promise<{ total: number }>) => (await ifReached(found))?.total ?? null
      const open = { where: { equals: { status: 'OPEN' } }, limit: 0 } as const
      const running = { where: { equals: { status: 'RUNNING' } }, limit: 0 } as const
      return {
        ...(await parts.status()),
        pid: process.pid,
        ready: parts.ready(),
        madeFirstUser: parts.madeFirstUser(),
        logLevel: log.levelNow(),
        readOnly: store.readOnlyReason,
        auditRefused: audit.refusal,
        storeAddress: shared?.address ?? null,
        servers: (await ifReached(parts.servers())) ?? [],
        hosts: await count(store.query('hosts', { limit: 0 })),
        runningTasks: await count(store.query('tasks', running)),
        terminals: await count(store.query('terminals', open)),
        storeFault: shared?.fault ?? null,
      }
    },
    async 'log-level'({ level }) {
      const before = log.levelNow()
      await record('server.logLevel', { level, before })
      log.setLevel(level)
      return { level, before }
    },
    async backup({ withOutput, passphrase }) {
      const { stream } = await backup({ withOutput, passphrase })
      const detail = { withOutput, withKeys: passphrase !== undefined }
      await record('server.backup', detail).catch((error: unknown) => {
        stream.destroy()
        throw error
      })
      return stream
    },
    'releases-add': async ({ incoming, name, signature }) => {
      const release = await releases.add(incoming, name, signature)
      const { sha256, size, version, signature: signed } = release
      await record('release.add', { name, sha256, size, version, signature: signed })
      return release
    },
    async 'upgrade-note'({ from, to, sha256, reverted }) {
      const outcome = reverted === null ? 'SUCCESS' : 'FAILED'
      const detail = { from, to, sha256, ...(reverted !== null && { error: reverted }) }
      await recordForSystem(audit, 'server.upgrade', detail, outcome)
      return {}
    },
    'releases-list': async () => ({ releases: await releases.list() }),
    'releases-remove': async ({ name }) => {
      const release = await releases.remove(name)
      const { sha256, size } = release
      await record('release.remove', { name, sha256, size })
      return release
    },
  }
}
