import { lchownSync, lstatSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { RsmError } from '../../core/errors.ts'

/**
 * `backups/` of a data directory, whose owner it belongs to. Errors: `conflict` for a link: root would write where the user of
 * the server has led it, and give that away.
 */
export function backupsIn(dataDir: string): string {
  const path = join(dataDir, 'backups')
  const { uid, gid } = statSync(dataDir)
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) mkdirSync(path, { mode: 0o700 })
  if (!lstatSync(path).isDirectory())
    throw new RsmError('conflict', `${path} is not a directory of its own`, {
      hint: 'nothing was changed; move it away, or name the file: --backup FILE',
    })
  lchownSync(path, uid, gid)
  return path
}
