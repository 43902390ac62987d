import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../../../../core/errors.ts'
import { syncDirectory, temporaryName } from '../../../../disk/durable.ts'
import { type BackupKind, backupKinds, clockName, keysName } from '../../backup/format.ts'
import { asRestored } from '../../backup/restored.ts'
import { type KeyFiles, openKeys } from '../../backup/sealed-keys.ts'
import { decoded } from '../../backup/stream.ts'
import { broken, type NextPart, type Unpacked, unpackBackup } from '../../backup/unpack.ts'
import { keyFault, keyNames } from '../../keys.ts'
import type { KeyRecord } from '../../records/run.ts'
import { copyStore } from '../../stream-sums.ts'
import type { Items, Reader } from '../../streams.ts'
import { createDirectoryWriter } from '../streams/writer.ts'
import { explain, fillDirectory, syncFiles } from './fill-directory.ts'
import { becomeOwner, openOffline, readOffline } from './offline.ts'

export interface Restored extends Unpacked {
  readonly directory: string
  readonly hasKeys: boolean
}

async function writeKeys(directory: string, keys: KeyFiles): Promise<void> {
  await mkdir(directory, { mode: 0o700 })
  for (const name of [...keyNames, 'tls.key', 'tls.crt']) {
    const bytes = keys[name]
    if (bytes !== undefined) await writeFile(join(directory, name), bytes, { flag: 'wx', mode: 0o600 })
  }
}

/**
 * Adds the keys of a backup to a data directory that has none. Errors: those of `unpackBackup`; `conflict` if
 * a server runs, if there are keys already, or if they do not belong to the store.
 */
export async function restoreKeys(
  source: AsyncIterable<Uint8Array>,
  path: string,
  passphrase: string,
): Promise<Restored> {
  const { value: sealed, ...unpacked } = await unpackBackup(source, async (_, next) => {
    const part = await next()
    return part?.name === keysName ? part.bytes : null
  })
  const { storeId } = unpacked.header
  const refuse = (why: string, hint: string): never => {
    throw new RsmError('conflict', why, { hint: `nothing was changed; ${hint}` })
  }
  if (sealed === null) return refuse('the backup holds no keys', 'name one that was made with --with-keys')
  const keys = await openKeys(sealed, passphrase, storeId)
  const dataLock = await openOffline(path)
  const directory = dataLock.path
  try {
    const { manifest, tables } = await readOffline(directory)
    const isOwn = manifest.storeId === storeId
    const isFit = (name: (typeof keyNames)[number]) =>
      keyFault(name, keys[name] ?? null, (tables.get('keys', name) as KeyRecord | undefined)?.keyId, true) ===
      null
    if (!isOwn || !keyNames.every(isFit))
      refuse(`the keys in the backup are not those of ${directory}`, 'name a backup of the same server')
    const place = join(directory, 'keys')
    const there = await readdir(place).catch(() => [])
    if (there.length > 0)
      refuse(`${place} holds ${there[0]} already`, 'move it elsewhere to restore the keys')
    await becomeOwner(directory)
    const temporary = temporaryName(place)
    try {
      await writeKeys(temporary, keys)
      await syncFiles(temporary)
      await rename(temporary, place)
      await syncDirectory(directory)
    } catch (error) {
      throw explain(error, place, 'restored')
    } finally {
      await rm(temporary, { recursive: true, force: true })
    }
    return { ...unpacked, directory, hasKeys: true }
  } finally {
    await dataLock.release()
  }
}

/** Streams of a backup, each read once, in the order of `backupKinds`; `smallFile` gets earlier entries. */
async function readerOf(
  next: NextPart,
  smallFile: (name: string, bytes: Uint8Array) => Promise<void>,
): Promise<Pick<Reader, BackupKind>> {
  let part = await next()
  for (; part !== null && (part.name === keysName || part.name === clockName); part = await next())
    await smallFile(part.name, part.bytes)
  async function* bytesOf(kind: BackupKind): AsyncGenerator<Uint8Array> {
    for (; part !== null; part = await next()) {
      if (!part.name.startsWith(`${kind}/`)) break
      yield part.bytes
    }
    if (kind === backupKinds.at(-1) && part !== null) throw broken(`is damaged: ${part.name} is out of order`)
  }
  const streams = backupKinds.map((kind) => [
    kind,
    () => decoded(kind, bytesOf(kind)) as AsyncIterable<Items[BackupKind]>,
  ])
  return Object.fromEntries(streams) as Pick<Reader, BackupKind>
}

/**
 * Unpacks a backup beside `path`, and renames it to `path` once all of it is checked, so that a failure
 * leaves nothing new there. `passphrase` opens its keys; without one they are omitted. Errors: those of
 * `unpackBackup`, and `conflict` if the directory is in use.
 */
export async function restoreBackup(
  source: AsyncIterable<Uint8Array>,
  path: string,
  passphrase: string | undefined,
  now: number,
): Promise<Restored> {
  const { directory, value } = await fillDirectory(path, {
    what: 'restored',
    fill: (temporary) =>
      unpackBackup(source, async (header, next) => {
        let hasKeys = false
        const backup = await readerOf(next, async (name, bytes) => {
          if (name === clockName) await writeFile(join(temporary, name), bytes, { flag: 'wx', mode: 0o600 })
          else if (passphrase !== undefined) {
            await writeKeys(join(temporary, 'keys'), await openKeys(bytes, passphrase, header.storeId))
            hasKeys = true
          }
        })
        await copyStore(asRestored(backup, header, now), createDirectoryWriter(temporary), () => undefined)
        return hasKeys
      }),
  })
  const { value: hasKeys, ...unpacked } = value
  return { ...unpacked, directory, hasKeys }
}
