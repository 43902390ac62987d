import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../../../core/errors.ts'
import type { Mutex } from '../../../core/mutex.ts'
import { isMissing } from '../../../disk/durable.ts'
import type { Log } from '../../../disk/log.ts'
import { keyFault, keyNames } from '../keys.ts'
import type { Backup, BackupMade, BackupOptions, StoreMaintenance } from '../ports/maintenance.ts'
import type { KeyRecord } from '../records/run.ts'
import type { Damage, Items, OnDamage, Reader } from '../streams.ts'
import {
  type BackupEnd,
  backupFormat,
  backupKinds,
  clockName,
  encodedParts,
  keysName,
  knownNouns,
  maxDamaged,
  outputKinds,
  partName,
  type StoreKind,
} from './format.ts'
import { type Part, packBackup } from './pack.ts'
import { type KeyFiles, sealKeys } from './sealed-keys.ts'

const keyFiles = ['seal.key', 'signing.key', 'tls.key', 'tls.crt']

/** Store at one transaction. The caller releases it. */
export interface StoreSnapshot {
  readonly storeId: string
  readonly sequence: number
  readonly reader: Reader
  release(): Promise<void>
}

interface Source {
  readonly store: StoreKind
  readonly directory: string
  readonly keysDirectory: string
  /** Version of the rsm that makes it. */
  readonly version: string
  /** Current time, in the format of records. */
  readonly createdAt: string
  openSnapshot(damaged: OnDamage): Promise<StoreSnapshot>
}

async function readKeys(directory: string): Promise<KeyFiles> {
  const keys: KeyFiles = {}
  for (const name of keyFiles) {
    const found = await readFile(join(directory, name)).catch((error: NodeJS.ErrnoException) => {
      if (isMissing(error) && name.startsWith('tls.')) return null
      throw new RsmError('unavailable', `${join(directory, name)} cannot be read: ${error.message}`, {
        hint: 'omit --with-keys, and keep the keys separately',
        cause: error,
      })
    })
    if (found !== null) keys[name] = found
  }
  return keys
}

/** Passes records through. Errors: `conflict` for keys of another store. */
async function* withOwnKeys(
  records: AsyncIterable<Items['records']>,
  keys: KeyFiles,
  directory: string,
): AsyncGenerator<Items['records']> {
  for await (const item of records) {
    const { id, keyId } = item.record as KeyRecord
    const name = item.noun === 'keys' ? keyNames.find((name) => name === id) : undefined
    const fault = name === undefined ? null : keyFault(name, keys[name] ?? null, keyId, true)
    if (fault !== null)
      throw new RsmError('conflict', `${join(directory, id)} ${fault}`, {
        hint: 'name the keys of this store with --keys, or omit --with-keys',
      })
    yield item
  }
}

async function* partsOf(
  { directory }: Source,
  reader: Reader,
  sealed: string | null,
  withOutput: boolean,
): AsyncGenerator<Part> {
  if (sealed !== null) yield { name: keysName, bytes: Buffer.from(sealed) }
  const clock = await readFile(join(directory, clockName)).catch(() => null)
  if (clock !== null) yield { name: clockName, bytes: clock }
  for (const kind of backupKinds) {
    if (!withOutput && outputKinds.includes(kind)) continue
    let number = 0
    for await (const bytes of encodedParts(kind, reader[kind]()))
      yield { name: partName(kind, ++number), bytes }
  }
}

export async function makeBackup(source: Source, options: BackupOptions): Promise<Backup> {
  const { store, keysDirectory, version, createdAt } = source
  const { withOutput, passphrase } = options
  const keys = passphrase === undefined ? null : await readKeys(keysDirectory)
  const damage: string[] = []
  const snapshot = await source.openSnapshot(({ of, fault, isLeftOut }: Damage) => {
    const kept = isLeftOut ? 'the backup omits it' : 'the backup has it as found'
    if (damage.length < maxDamaged) damage.push(`${of}: ${fault}; ${kept}`)
  })
  const { storeId, sequence } = snapshot
  const reader = keys
    ? { ...snapshot.reader, records: () => withOwnKeys(snapshot.reader.records(), keys, keysDirectory) }
    : snapshot.reader
  const sealed =
    keys &&
    (await sealKeys(keys, passphrase ?? '', storeId).catch(async (error: unknown) => {
      await snapshot.release()
      throw error
    }))
  let settle: (result: BackupEnd | Error) => void = () => undefined
  const ended = new Promise<BackupMade>((resolve, reject) => {
    settle = (result) => {
      if (result instanceof Error) return reject(result)
      const { files, bytes, damaged } = result
      resolve({ sequence, files, bytes, damaged })
    }
  })
  const made = ended.then(
    (result) => snapshot.release().then(() => result),
    (error: unknown) => snapshot.release().then(() => Promise.reject(error)),
  )
  const stream = packBackup({
    header: {
      format: backupFormat,
      version,
      createdAt,
      storeId,
      store,
      nouns: knownNouns,
      sequence,
      hasOutput: withOutput,
      hasKeys: sealed !== null,
    },
    parts: partsOf(source, reader, sealed, withOutput),
    damaged: () => damage,
    ended: (result) => settle(result),
  })
  return { stream, made }
}

interface Parts {
  readonly maintenance: Pick<StoreMaintenance, 'backup'>
  /** Shared with everything that removes old data. */
  readonly dataLock: Mutex
  readonly log: Log
}

/** Backups of a running server: one at a time, and nothing expires while one is made. */
export type BeginBackup = (options: BackupOptions) => Promise<Backup>

export function createBackups({ maintenance, dataLock, log }: Parts): BeginBackup {
  let isUnderWay = false
  return async (options) => {
    if (isUnderWay)
      throw new RsmError('conflict', 'a backup is already running', { hint: 'wait until it has ended' })
    isUnderWay = true
    const unlock = await dataLock.acquire()
    const release = () => {
      isUnderWay = false
      unlock()
    }
    const backup = await maintenance.backup(options).catch((error: unknown) => {
      release()
      throw error
    })
    backup.made.finally(release).then(
      (made) => log.info({ ...made }, 'a backup was made'),
      (error: unknown) => log.warn({ err: error }, 'a backup was aborted'),
    )
    return backup
  }
}
