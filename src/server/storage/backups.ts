import { RsmError } from '../../core/errors.ts'
import type { Mutex } from '../../core/mutex.ts'
import type { Log } from '../../disk/log.ts'
import type { Backup, BackupOptions, StoreMaintenance } from './ports/maintenance.ts'

interface Parts {
  readonly maintenance: Pick<StoreMaintenance, 'backup'>
  /** Shared with everything that removes old data. */
  readonly dataLock: Mutex
  readonly log: Log
}

/** Backups of a running server: one at a time, and nothing expires while one is made. */
export type BeginBackup = (options: BackupOptions) => Promise<Backup>

export function createBackups({ maintenance, dataLock, log }: Parts): BeginBackup {
  let isUnderWay = false
  return async (options) => {
    if (isUnderWay)
      throw new RsmError('conflict', 'a backup is already running', { hint: 'wait until it has ended' })
    isUnderWay = true
    const unlock = await dataLock.acquire()
    const release = () => {
      isUnderWay = false
      unlock()
    }
    const backup = await maintenance.backup(options).catch((error: unknown) => {
      release()
      throw error
    })
    backup.made.finally(release).then(
      (made) => log.info({ ...made }, 'a backup was made'),
      (error: unknown) => log.warn({ err: error }, 'a backup was aborted'),
    )
    return backup
  }
}
