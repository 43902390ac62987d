import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { lchown, lstat, mkdir, readdir, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { RsmError } from '../../../../core/errors.ts'
import {
  isMissing,
  removeOnSignal,
  removeStale,
  syncDirectory,
  temporaryName,
} from '../../../../disk/durable.ts'
import { whyUnwritable } from '../../../../disk/named-files.ts'

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
