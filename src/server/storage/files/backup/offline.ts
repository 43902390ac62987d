import { access, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../../../../core/errors.ts'
import { type DataDirectory, openDataDirectory } from '../../../../disk/data-directory.ts'
import type { Log } from '../../../../disk/log.ts'
import { refuseElsewhere } from '../../moved-store.ts'
import type { Tables } from '../../tables/tables.ts'
import { damaged, type Manifest, manifestName, readManifest } from '../store/files.ts'
import { load } from '../store/recovery.ts'
import { type JsonStore, openJsonStore } from '../store/store.ts'

/** What works on files can't help where the store is elsewhere. */
const elsewhereHint = 'start the server for this, or for a backup name its store with --store'

/**
 * The directory of a server that does not run, locked; `option` names it.
 * Errors: `not_found` where there is no store, `conflict` where it is in use.
 */
export async function openOffline(
  path: string,
  { hint = elsewhereHint, option = '--data-dir (RSM_DATA_DIR)' } = {},
): Promise<DataDirectory> {
  await refuseElsewhere(path, hint)
  // The lock would make the directory where there is none.
  await access(join(path, 'store')).catch((error: NodeJS.ErrnoException) => {
    const why =
      error.code === 'ENOENT' || error.code === 'ENOTDIR' ? 'is not that of a server' : error.message
    throw new RsmError('not_found', `the data directory ${path} ${why}: it has no store`, {
      hint: `name the data directory of the server with ${option}`,
      cause: error,
    })
  })
  return openDataDirectory(path, { rootMayRead: true })
}

/** What root writes there has to be the server's: this process is its user from here on. */
export async function becomeOwner(path: string): Promise<void> {
  const { uid, gid } = await stat(path)
  if (process.getuid?.() !== 0 || uid === 0) return
  process.setgroups?.([gid])
  process.setgid?.(gid)
  process.setuid?.(uid)
}

/** Does `work` on the store of a server that does not run, as the user of the directory. */
export async function withOfflineStore<T>(
  path: string,
  log: Log,
  work: (store: JsonStore, directory: string) => Promise<T>,
): Promise<T> {
  const directory = await openOffline(path)
  try {
    await becomeOwner(directory.path)
    const store = await openJsonStore({
      directory: join(directory.path, 'store'),
      log: (level, message, fields) => log[level](fields, message),
      onFatal: (error) => {
        throw error
      },
    })
    try {
      return await work(store, directory.path)
    } finally {
      await store.close()
    }
  } finally {
    await directory.release()
  }
}

async function requiredManifest(directory: string): Promise<Manifest> {
  const manifest = await readManifest(directory)
  if (manifest === null) throw damaged(join(directory, manifestName), 0, 'the file is missing')
  return manifest
}

/** The records of a locked data directory, which is left as it is: an older version's store stays one of that version. */
export async function readOffline(path: string): Promise<{ manifest: Manifest; tables: Tables }> {
  const directory = join(path, 'store')
  const manifest = await requiredManifest(directory)
  const { model } = await load(directory, manifest, new AbortController().signal)
  return { manifest, tables: model.data }
}
