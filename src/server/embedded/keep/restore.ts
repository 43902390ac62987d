import { rmSync } from 'node:fs'
import { lchown, lstat, mkdir, open, readdir, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { RsmError } from '../../../core/errors.ts'
import { syncDirectory, temporaryName } from '../../../disk/durable.ts'
import { removeStale } from '../../../disk/stale.ts'
import { whyUnwritable } from '../../../disk/unwritable.ts'
import { type BackupHeader, keysName } from './format.ts'
import { removeOnSignal } from './on-signal.ts'
import { openKeys } from './sealed-keys.ts'
import { type Unpacked, unpackBackup } from './unpack.ts'

interface RestoreOptions {
  /** Opens the keys of the backup; without one they stay out. */
  readonly passphrase?: string | undefined
  /** Looks through the directory before it takes its name, and notes in it that it is restored. */
  readonly finish: (directory: string, header: BackupHeader) => Promise<void>
}

export interface Restored extends Unpacked {
  readonly directory: string
  /** Whether its keys are in place. */
  readonly hasKeys: boolean
}

const inUse = 'nothing was changed; name an empty directory or one that is not there yet'

/** Whether the directory is there; it is empty then. @throws RsmError `conflict` */
async function isThereAndEmpty(directory: string): Promise<boolean> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    const why = error.code === 'ENOTDIR' ? 'is not a directory' : `can not be read: ${error.message}`
    throw new RsmError('conflict', `${directory} ${why}`, { hint: inUse, cause: error })
  })
  if (names === null || names.length === 0) return names !== null
  const what = names.includes('store')
    ? 'is the data directory of a server'
    : `is not empty: it holds ${names[0]}`
  throw new RsmError('conflict', `${directory} ${what}`, { hint: inUse })
}

/** Who has the directory keeps it, where root restores for the user of a service. */
async function giveTo(owner: { uid: number; gid: number }, path: string): Promise<void> {
  await lchown(path, owner.uid, owner.gid)
  if ((await lstat(path)).isDirectory())
    for (const name of await readdir(path)) await giveTo(owner, join(path, name))
}

class Target {
  readonly #root: string
  readonly #made = new Set<string>()

  constructor(root: string) {
    this.#root = root
  }

  async write(name: string, bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void> {
    await this.#directory(dirname(name))
    // The name is new: a backup that has one twice is none of ours.
    const file = await open(join(this.#root, name), 'wx', 0o600)
    try {
      for await (const chunk of bytes) await file.writeFile(chunk)
      await file.sync()
    } finally {
      await file.close()
    }
  }

  async sync(): Promise<void> {
    for (const name of this.#made) await syncDirectory(join(this.#root, name))
  }

  async #directory(name: string): Promise<void> {
    if (this.#made.has(name)) return
    if (name !== '.') {
      await this.#directory(dirname(name))
      await mkdir(join(this.#root, name), { mode: 0o700 })
    }
    this.#made.add(name)
  }
}

function explain(error: unknown, directory: string): unknown {
  if (error instanceof RsmError || !(error instanceof Error) || !('code' in error)) return error
  const isMount = error.code === 'EBUSY' || error.code === 'EXDEV'
  const why = isMount ? 'it is a mount point' : whyUnwritable(error)
  return new RsmError('unavailable', `${directory} can not be restored: ${why}`, {
    hint: isMount ? 'name a new directory below it' : 'nothing was changed; change that, then try again',
    cause: error,
  })
}

/**
 * Unpacks a backup beside `path` and lets it take that name when all of it has been checked: until then nothing is there
 * that was not there before. Errors: as of `unpackBackup`, and `conflict` where the directory is in use.
 */
export async function restoreBackup(
  source: AsyncIterable<Uint8Array>,
  path: string,
  { passphrase, finish }: RestoreOptions,
): Promise<Restored> {
  // A link stays one: the directory that it leads to takes the name.
  const directory = await realpath(path).catch(() => resolve(path))
  const isThere = await isThereAndEmpty(directory)
  const hidden = join(dirname(directory), `.${basename(directory)}`)
  await removeStale(hidden)
  const temporary = temporaryName(hidden)
  const stop = removeOnSignal(() => rmSync(temporary, { recursive: true, force: true, maxRetries: 3 }))
  try {
    await mkdir(temporary, { mode: 0o700 })
    const target = new Target(temporary)
    let sealed = ''
    const unpacked = await unpackBackup(source, {
      header: () => undefined,
      async file(name, bytes) {
        if (name !== keysName) return target.write(name, bytes)
        for await (const chunk of bytes) sealed += chunk.toString('latin1')
      },
    })
    const { header } = unpacked
    const hasKeys = sealed !== '' && passphrase !== undefined
    if (hasKeys)
      for (const [name, bytes] of Object.entries(await openKeys(sealed, passphrase, header.storeId)))
        await target.write(`keys/${basename(name)}`, [bytes])
    await finish(temporary, header)
    if (isThere && process.getuid?.() === 0) await giveTo(await lstat(directory), temporary)
    await target.sync()
    await rename(temporary, directory)
    await syncDirectory(dirname(directory))
    return { ...unpacked, directory, hasKeys }
  } catch (error) {
    throw explain(error, directory)
  } finally {
    await rm(temporary, { recursive: true, force: true })
    stop()
  }
}
