import { access, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../../../../core/errors.ts'
import { type DataDirectory, openDataDirectory } from '../../../../disk/data-directory.ts'
import { isMissing } from '../../../../disk/durable.ts'
import type { Log } from '../../../../disk/log.ts'
import { refuseElsewhere } from '../../moved-store.ts'
import type { Tables } from '../../tables.ts'
import { damaged, type Manifest, manifestName, readManifest } from '../store/files.ts'
import { load } from '../store/recovery.ts'
import { type JsonStore, openJsonStore } from '../store/store.ts'

/** Hint for a store that is elsewhere, because commands on files cannot reach it. */
const elsewhereHint = 'start the server for this, or for a backup name its store with --store'

/**
 * Opens and locks the data directory of a stopped server; `option` names it in errors.
 * Errors: `not_found` if it has no store, `conflict` if it is in use.
 */
export async function openOffline(
  path: string,
  { hint = elsewhereHint, option = '--data-dir (RSM_DATA_DIR)' } = {},
): Promise<DataDirectory> {
  await refuseElsewhere(path, hint)
  // The lock would create a missing directory.
  await access(join(path, 'store')).catch((error: NodeJS.ErrnoException) => {
    const why = isMissing(error) || error.code === 'ENOTDIR' ? 'is not that of a server' : error.message
    throw new RsmError('not_found', `the data directory ${path} ${why}: it has no store`, {
      hint: `name the data directory of the server with ${option}`,
      cause: error,
    })
  })
  return openDataDirectory(path, { rootMayRead: true })
}

/** Switches from root to the directory's owner, so that the server can use the files written from here on. */
export async function becomeOwner(path: string): Promise<void> {
  const { uid, gid } = await stat(path)
  if (process.getuid?.() !== 0 || uid === 0) return
  process.setgroups?.([gid])
  process.setgid?.(gid)
  process.setuid?.(uid)
}

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

/**
 * Reads the records of a locked data directory without changing it, so that an older store keeps its format.
 */
export async function readOffline(path: string): Promise<{ manifest: Manifest; tables: Tables }> {
  const directory = join(path, 'store')
  const manifest = await requiredManifest(directory)
  const { model } = await load(directory, manifest, new AbortController().signal)
  return { manifest, tables: model.data }
}
