import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../../../../core/errors.ts'
import type { Backup, BackupMade, BackupOptions } from '../../ports/keep.ts'
import { formatVersion, type HeldStore } from '../store/files.ts'
import { type BackupEnd, backupFormat, keysName, mostDamaged } from './format.ts'
import { packBackup } from './pack.ts'
import { type Part, partsOf } from './parts.ts'
import { type KeyFiles, sealKeys } from './sealed-keys.ts'

const keyFiles = ['seal.key', 'signing.key', 'tls.key', 'tls.crt']

interface Source {
  readonly directory: string
  readonly keysDirectory: string
  /** Of the rsm that makes it, for its header. */
  readonly version: string
  /** Now, as records hold it. */
  readonly createdAt: string
  hold(): Promise<HeldStore>
}

async function readKeys(directory: string): Promise<KeyFiles> {
  const keys: KeyFiles = {}
  for (const name of keyFiles) {
    const found = await readFile(join(directory, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' && name.startsWith('tls.')) return null
      throw new RsmError('unavailable', `${join(directory, name)} cannot be read: ${error.message}`, {
        hint: 'leave --with-keys out, and keep the keys apart',
        cause: error,
      })
    })
    if (found !== null) keys[name] = found
  }
  return keys
}

async function* withKeys(sealed: string | null, parts: AsyncIterable<Part>): AsyncGenerator<Part> {
  if (sealed !== null) {
    const bytes = Buffer.from(sealed)
    yield { name: keysName, size: bytes.length, bytes: [bytes] }
  }
  yield* parts
}

/** Begins a backup of a data directory; see storage/ports/keep.ts. */
export async function makeBackup(source: Source, options: BackupOptions): Promise<Backup> {
  const { directory, keysDirectory, version, createdAt } = source
  const { withOutput, passphrase } = options
  const keys = passphrase === undefined ? null : await readKeys(keysDirectory)
  const held = await source.hold()
  const { storeId } = held.manifest
  const sealed = keys && (await sealKeys(keys, passphrase ?? '', storeId))
  const damage: string[] = []
  const damaged = (sentence: string) => {
    if (damage.length < mostDamaged) damage.push(sentence)
  }
  let settle: (result: BackupEnd | Error) => void = () => undefined
  const ended = new Promise<BackupMade>((resolve, reject) => {
    settle = (result) => {
      if (result instanceof Error) return reject(result)
      const { files, bytes, damaged } = result
      resolve({ sequence: held.sequence, files, bytes, damaged })
    }
  })
  const release = async () => held.release()
  const made = ended.then(
    (result) => release().then(() => result),
    (error: unknown) => release().then(() => Promise.reject(error)),
  )
  const stream = packBackup({
    header: {
      format: backupFormat,
      version,
      createdAt,
      storeId,
      storeFormat: formatVersion,
      sequence: held.sequence,
      hasOutput: withOutput,
      hasKeys: sealed !== null,
    },
    parts: withKeys(sealed, partsOf(directory, held, { withOutput, damaged })),
    damaged: () => damage,
    ended: (result) => settle(result),
  })
  return { stream, made }
}
