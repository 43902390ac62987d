import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { lchown, lstat, mkdir, readdir, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { RsmError } from '../../../../core/errors.ts'
import { removeOnSignal, removeStale, syncDirectory, temporaryName } from '../../../../disk/durable.ts'
import { whyUnwritable } from '../../../../disk/named-files.ts'

const inUse = 'nothing was changed; name an empty directory or one that is not there yet'

interface Filling<T> {
  /** What happens to the directory, as in "cannot be restored". */
  readonly what: string
  /** Makes all of it in `temporary`; `directory` is the name that this takes. */
  readonly fill: (temporary: string, directory: string) => Promise<T>
  /** Runs just before it takes its name. */
  readonly placed?: (directory: string) => Promise<void>
}

/**
 * Makes a data directory beside `path`, and lets it take that name when it is whole: until then nothing is there that was not
 * there before. Errors: `conflict` where the directory is in use.
 */
export async function fillDirectory<T>(
  path: string,
  { what, fill, placed }: Filling<T>,
): Promise<{ directory: string; value: T }> {
  // A link stays one: the directory that it leads to takes the name.
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

/** Syncs all files of a file system at once: one after the other would take minutes. */
export async function syncFiles(path: string): Promise<void> {
  const [code] = await once(spawn('sync', ['-f', path], { stdio: 'ignore' }), 'exit')
  if (code !== 0) throw new RsmError('unavailable', `${path} could not be brought to the disk`)
}

/** Whether the directory is there; it is empty then. @throws RsmError `conflict` */
async function isThereAndEmpty(directory: string): Promise<boolean> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    const why = error.code === 'ENOTDIR' ? 'is not a directory' : `cannot be read: ${error.message}`
    throw new RsmError('conflict', `${directory} ${why}`, { hint: inUse, cause: error })
  })
  if (names === null || names.length === 0) return names !== null
  const what = names.includes('store')
    ? 'is the data directory of a server'
    : `is not empty: it holds ${names[0]}`
  throw new RsmError('conflict', `${directory} ${what}`, { hint: inUse })
}

/** Keeps the directory's owner, where root restores for the user of a service. */
async function chownTree(owner: { uid: number; gid: number }, path: string): Promise<void> {
  await lchown(path, owner.uid, owner.gid)
  if ((await lstat(path)).isDirectory())
    for (const name of await readdir(path)) await chownTree(owner, join(path, name))
}

/** An error of the file system in plain words. */
export function explain(error: unknown, directory: string, what: string): unknown {
  if (error instanceof RsmError || !(error instanceof Error) || !('code' in error)) return error
  const isMount = error.code === 'EBUSY' || error.code === 'EXDEV'
  const why = isMount ? 'it is a mount point' : whyUnwritable(error)
  return new RsmError('unavailable', `${directory} cannot be ${what}: ${why}`, {
    hint: isMount ? 'name a new directory below it' : 'nothing was changed; change that, then try again',
    cause: error,
  })
}
