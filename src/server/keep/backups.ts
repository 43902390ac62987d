import type { Log } from '../log.ts'
import type { Backup, BackupOptions, Keep } from '../seams/keep.ts'
import type { Turn } from './turn.ts'

interface Parts {
  readonly keep: Pick<Keep, 'backup'>
  readonly turn: Turn
  readonly log: Log
}

/** Backups of a running server: one at a time, and while one is made nothing is removed for its age. */
export type BeginBackup = (options: BackupOptions) => Promise<Backup>

export function createBackups({ keep, turn, log }: Parts): BeginBackup {
  return async (options) => {
    const release = await turn.take('a backup')
    const backup = await keep.backup(options).catch((error: unknown) => {
      release()
      throw error
    })
    backup.made.finally(release).then(
      (made) => log.info({ ...made }, 'a backup was made'),
      (error: unknown) => log.warn({ err: error }, 'a backup broke off'),
    )
    return backup
  }
}
