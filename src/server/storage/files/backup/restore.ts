import { mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { RsmError } from '../../../../core/errors.ts'
import { syncDirectory, temporaryName } from '../../../../disk/durable.ts'
import { keyFault, keyNames } from '../../keys/key-files.ts'
import type { KeyRecord } from '../../records/run.ts'
import { becomeOwner, openAlone, readAlone } from './alone.ts'
import { explain, fillDirectory } from './fill-directory.ts'
import { type BackupHeader, keysName } from './format.ts'
import { type KeyFiles, openKeys } from './sealed-keys.ts'
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

async function unpackWithKeys(
  source: AsyncIterable<Uint8Array>,
  write: (name: string, bytes: AsyncIterable<Uint8Array>) => Promise<void>,
): Promise<Unpacked & { sealed: string }> {
  let sealed = ''
  const unpacked = await unpackBackup(source, {
    header: () => undefined,
    async file(name, bytes) {
      if (name !== keysName) return write(name, bytes)
      for await (const chunk of bytes) sealed += chunk.toString('latin1')
    },
  })
  return { ...unpacked, sealed }
}

async function writeKeys(target: Target, directory: string, keys: KeyFiles): Promise<void> {
  for (const [name, bytes] of Object.entries(keys))
    await target.write(join(directory, basename(name)), [bytes])
}

/**
 * Adds the keys of a backup to a data directory that has none. Errors: as of `unpackBackup`, `conflict` where a server runs,
 * where keys are there already, or where they are not those of the store.
 */
export async function restoreKeys(
  source: AsyncIterable<Uint8Array>,
  path: string,
  passphrase: string,
): Promise<Restored> {
  const { sealed, ...unpacked } = await unpackWithKeys(source, async (_name, bytes) => {
    for await (const _ of bytes);
  })
  const { storeId } = unpacked.header
  const refuse = (why: string, hint: string): never => {
    throw new RsmError('conflict', why, { hint: `nothing was changed; ${hint}` })
  }
  if (sealed === '') refuse('the backup holds no keys', 'name one that was made with --with-keys')
  const keys = await openKeys(sealed, passphrase, storeId)
  const held = await openAlone(path)
  const directory = held.path
  try {
    const { manifest, tables } = await readAlone(directory)
    const isOwn = manifest.storeId === storeId
    const isFit = (name: (typeof keyNames)[number]) =>
      keyFault(name, keys[name] ?? null, (tables.get('keys', name) as KeyRecord | undefined)?.keyId, true) ===
      null
    if (!isOwn || !keyNames.every(isFit))
      refuse(`the keys in the backup are not those of ${directory}`, 'name a backup of the same server')
    const place = join(directory, 'keys')
    const there = await readdir(place).catch(() => [])
    if (there.length > 0) refuse(`${place} holds ${there[0]} already`, 'move it away to restore the keys')
    await becomeOwner(directory)
    const temporary = temporaryName(place)
    try {
      const target = new Target(directory)
      await writeKeys(target, basename(temporary), keys)
      await target.sync()
      await rename(temporary, place)
      await syncDirectory(directory)
    } catch (error) {
      throw explain(error, place, 'restored')
    } finally {
      await rm(temporary, { recursive: true, force: true })
    }
    return { ...unpacked, directory, hasKeys: true }
  } finally {
    await held.release()
  }
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
  const restored = await fillDirectory(path, {
    what: 'restored',
    async fill(temporary) {
      const target = new Target(temporary)
      const { sealed, ...unpacked } = await unpackWithKeys(source, (name, bytes) => target.write(name, bytes))
      const { header } = unpacked
      const hasKeys = sealed !== '' && passphrase !== undefined
      if (hasKeys) await writeKeys(target, 'keys', await openKeys(sealed, passphrase, header.storeId))
      await finish(temporary, header)
      return { ...unpacked, hasKeys, target }
    },
    sync: (_, { target }) => target.sync(),
  })
  const { directory, value } = restored
  const { target: _, ...rest } = value
  return { ...rest, directory }
}
