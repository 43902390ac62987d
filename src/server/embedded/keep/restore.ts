import { mkdir, open } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { syncDirectory } from '../../../disk/durable.ts'
import { fillDirectory } from './fill-directory.ts'
import { type BackupHeader, keysName } from './format.ts'
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
      return { ...unpacked, hasKeys, target }
    },
    sync: (_, { target }) => target.sync(),
  })
  const { directory, value } = restored
  const { target: _, ...rest } = value
  return { ...rest, directory }
}
