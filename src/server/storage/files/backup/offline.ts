import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { access, lchown, lstat, mkdir, readdir, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { RsmError } from '../../../../core/errors.ts'
import { type DataDirectory, openDataDirectory } from '../../../../disk/data-directory.ts'
import {
  isMissing,
  removeOnSignal,
  removeStale,
  syncDirectory,
  temporaryName,
} from '../../../../disk/durable.ts'
import type { Log } from '../../../../disk/log.ts'
import { whyUnwritable } from '../../../../disk/named-files.ts'
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

const inUse = 'nothing was changed; name an empty or a new directory'

interface Filling<T> {
  /** Action on the directory, as in "cannot be restored". */
  readonly what: string
  /** Creates the content in `temporary`, which is then renamed to `directory`. */
  readonly fill: (temporary: string, directory: string) => Promise<T>
  /** Called just before the rename. */
  readonly placed?: (directory: string) => Promise<void>
}

/**
 * Creates a data directory beside `path`, and renames it to `path` once it is complete, so that a failure
 * leaves nothing new there. Errors: `conflict` if the directory is in use.
 */
export async function fillDirectory<T>(
  path: string,
  { what, fill, placed }: Filling<T>,
): Promise<{ directory: string; value: T }> {
  // Keep a symbolic link, and replace the directory that it points to.
  const directory = await realpath(path).catch(() => resolve(path))
  const isThere = await isThereAndEmpty(directory)
  const hidden = join(dirname(directory), `.${basename(directory)}`)
  await removeStale(hidden)
  const temporary = temporaryName(hidden)
  const stop = removeOnSignal(() => rmSync(temporary, { recursive: true, force: true, maxRetries: 3 }))
  try {
    await mkdir(temporary, { mode: 0o700 })
    const value = await fill(temporary, directory)
    if (isThere && process.getuid?.() === 0) await chownTree(await lstat(directory), temporary)
    await syncFiles(temporary)
    await placed?.(directory)
    await rename(temporary, directory)
    await syncDirectory(dirname(directory))
    return { directory, value }
  } catch (error) {
    throw explain(error, directory, what)
  } finally {
    await rm(temporary, { recursive: true, force: true })
    stop()
  }
}

/** Syncs the whole file system at once, because syncing file by file would take minutes. */
export async function syncFiles(path: string): Promise<void> {
  const [code] = await once(spawn('sync', ['-f', path], { stdio: 'ignore' }), 'exit')
  if (code !== 0) throw new RsmError('unavailable', `cannot sync ${path} to disk`)
}

/** Whether the directory exists; it is empty then. @throws RsmError `conflict` */
async function isThereAndEmpty(directory: string): Promise<boolean> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (isMissing(error)) return null
    const why = error.code === 'ENOTDIR' ? 'is not a directory' : `cannot be read: ${error.message}`
    throw new RsmError('conflict', `${directory} ${why}`, { hint: inUse, cause: error })
  })
  if (names === null || names.length === 0) return names !== null
  const what = names.includes('store')
    ? 'is the data directory of a server'
    : `is not empty: it holds ${names[0]}`
  throw new RsmError('conflict', `${directory} ${what}`, { hint: inUse })
}

/** Keeps the directory's owner if root restores for the user of a service. */
async function chownTree(owner: { uid: number; gid: number }, path: string): Promise<void> {
  await lchown(path, owner.uid, owner.gid)
  if ((await lstat(path)).isDirectory())
    for (const name of await readdir(path)) await chownTree(owner, join(path, name))
}

export function explain(error: unknown, directory: string, what: string): unknown {
  if (error instanceof RsmError || !(error instanceof Error) || !('code' in error)) return error
  const isMount = error.code === 'EBUSY' || error.code === 'EXDEV'
  const why = isMount ? 'it is a mount point' : whyUnwritable(error)
  return new RsmError('unavailable', `${directory} cannot be ${what}: ${why}`, {
    hint: isMount ? 'name a new directory below it' : 'nothing was changed; change that, then try again',
    cause: error,
  })
}
