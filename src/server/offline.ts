import { join } from 'node:path'
import type { Compacted } from '../core/protocol/control.ts'
import { isoTime, systemClock } from './clock.ts'
import { holdAlone, openAlone, withStoreAlone } from './embedded/keep/alone.ts'
import { makeBackup } from './embedded/keep/backup.ts'
import { markRestored } from './embedded/keep/mark-restored.ts'
import { type Restored, restoreBackup } from './embedded/keep/restore.ts'
import { createLog } from './log.ts'
import type { Backup, BackupOptions } from './seams/keep.ts'
import { serverVersion } from './version.ts'

export { checkBackup, writeCheckedFile } from './embedded/keep/checked-file.ts'

/** What `rsm server` commands do themselves on a data directory where no server runs: they take its lock, as a server does. */

/** A backup of a data directory; it is locked until the backup has ended. */
export async function backupAlone(
  dataDir: string,
  keysDir: string | undefined,
  options: BackupOptions,
): Promise<Backup> {
  const directory = await openAlone(dataDir)
  const backup = await makeBackup(
    {
      directory: directory.path,
      keysDirectory: keysDir ?? join(directory.path, 'keys'),
      version: serverVersion(),
      createdAt: isoTime(systemClock.now()),
      hold: () => holdAlone(directory.path),
    },
    options,
  ).catch(async (error: unknown) => {
    await directory.release()
    throw error
  })
  const release = () => void directory.release()
  backup.made.then(release, release)
  return backup
}

/** Brings a backup back as the data directory `path`; see embedded/keep/restore.ts for its errors. */
export async function restore(
  source: AsyncIterable<Uint8Array>,
  path: string,
  passphrase: string | undefined,
): Promise<Restored> {
  const log = createLog('WARN')
  return restoreBackup(source, path, {
    passphrase,
    finish: (directory, header) => markRestored(directory, header, { clock: systemClock, log }),
  })
}

/** Writes the store of a data directory anew. */
export const compactAlone = (dataDir: string): Promise<Compacted> =>
  withStoreAlone(dataDir, createLog('WARN'), (store) => store.compact())
