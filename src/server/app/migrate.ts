import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { RsmError } from '../../core/errors.ts'
import { isMissing } from '../../disk/durable.ts'
import { createLog } from '../../disk/log.ts'
import { becomeOwner, fillDirectory, openOffline } from '../storage/files/backup/offline.ts'
import { readDirectory } from '../storage/files/streams/reader.ts'
import { createDirectoryWriter } from '../storage/files/streams/writer.ts'
import { keyFault, keyNames } from '../storage/keys.ts'
import { noteElsewhere } from '../storage/moved-store.ts'
import {
  displayAddress,
  readStoreAddress,
  type StoreAddress,
} from '../storage/postgres/connection/address.ts'
import { closeStore, openStore } from '../storage/postgres/streams/closed.ts'
import { readPostgres } from '../storage/postgres/streams/reader.ts'
import { openSource, openTarget } from '../storage/postgres/streams/store.ts'
import { createPostgresWriter } from '../storage/postgres/streams/writer.ts'
import type { KeyRecord } from '../storage/records/run.ts'
import { copyStore, differing, type Sum, type Sums, sumsOf } from '../storage/stream-sums.ts'
import type { Kind, Reader } from '../storage/streams.ts'

/** `rsm server migrate`: copies the store of a stopped server to another place, then compares the copy. */

export type Stage = 'moved' | 'compared'
export type OnProgress = (stage: Stage, kind: Kind, sum: Sum) => void

interface Options {
  /** `postgres://USER@HOST[,HOST…]/DATABASE`. */
  readonly store: string
  readonly storePasswordFile: string | undefined
  readonly insecureStore: boolean
  /** The data directory. */
  readonly directory: string
  /** Directory of the keys; `keys` in the data directory by default. */
  readonly keysDir: string | undefined
  readonly onProgress: OnProgress
}

export interface Migrated {
  readonly from: string
  readonly to: string
  readonly storeId: string
  /** Number of records moved, by kind; `bytes` of output, recordings and audit log. */
  readonly moved: Readonly<Record<string, number>>
  readonly keysDir: string
}

const log = createLog('WARN')

function countsOf(sums: Sums): Record<string, number> {
  const { output, recordings, audit, identity: _, heads: __, ...rest } = sums
  const counts = Object.assign(
    {},
    ...Object.values({ ...rest, output, recordings, audit }).map((sum) => sum.counts),
  )
  return {
    ...counts,
    outputBytes: output.bytes,
    recordingBytes: recordings.bytes,
    auditBytes: audit.bytes,
  }
}

/** @throws RsmError `internal` if the copy differs. */
async function compare(sums: Sums, copy: Reader, onProgress: OnProgress): Promise<void> {
  const found = differing(sums, await sumsOf(copy, (kind, sum) => onProgress('compared', kind, sum)))
  if (found.length === 0) return
  throw new RsmError('internal', `the copy differs from the original: ${found.join(', ')}`, {
    hint: 'the old store is unchanged: start the server with it, and report this as a bug in rsm',
  })
}

/** Checks that the keys are readable and match the store. Errors: `unavailable`. */
async function checkKeys(directory: string, keys: readonly KeyRecord[]): Promise<void> {
  for (const name of keyNames) {
    const file = join(directory, name)
    const bytes = await readFile(file).catch((cause: NodeJS.ErrnoException) => {
      if (isMissing(cause)) return null
      throw new RsmError('unavailable', `${file} cannot be read: ${cause.message}`, { cause })
    })
    const fault = keyFault(name, bytes, keys.find(({ id }) => id === name)?.keyId, true)
    if (fault !== null)
      throw new RsmError('unavailable', `${file} ${fault}, and the store was used with it`, {
        hint: 'give the directory of the server keys with --keys, or restore the keys from a backup',
      })
  }
}

/** Copies a data directory to an empty database. The directory stays, with a note that its store has moved. */
export async function migrateToPostgres(options: Options): Promise<Migrated> {
  const { storePasswordFile, insecureStore, onProgress } = options
  const address = readStoreAddress(options.store, storePasswordFile, insecureStore)
  const path = resolve(options.directory)
  const keysDir = resolve(options.keysDir ?? join(path, 'keys'))
  const directory = await openOffline(path, {
    hint: `it was moved there; if that migration did not end, remove ${join(path, 'postgres.json')} and migrate again`,
    option: '--from',
  })
  try {
    await becomeOwner(path)
    const { reader, storeId, tables } = await readDirectory(path)
    await checkKeys(keysDir, tables.slice('keys') as KeyRecord[])
    const to = displayAddress(address)
    const store = await openTarget(address, path, log)
    try {
      const { database, ask } = store
      const sums = await copyStore(reader, createPostgresWriter(database, ask), (kind, sum) =>
        onProgress('moved', kind, sum),
      )
      await compare(sums, readPostgres(database), onProgress)
      await ask('analyze')
      await noteElsewhere(path, { store: to, storeId })
      // From here on synchronous: the next commit also flushes everything before it.
      await ask('set synchronous_commit = on')
      await openStore(ask)
      return { from: path, to, storeId, moved: countsOf(sums), keysDir }
    } finally {
      await store.close()
    }
  } finally {
    await directory.release()
  }
}

/** Errors: as `readStoreAddress`, naming the option that holds the URL. */
function addressOfFrom({ store, storePasswordFile, insecureStore }: Options): StoreAddress {
  try {
    return readStoreAddress(store, storePasswordFile, insecureStore)
  } catch (error) {
    if (!(error instanceof RsmError)) throw error
    const { hint } = error
    throw new RsmError(
      error.code,
      error.message.replace(/^--store /, '--from '),
      hint === undefined ? {} : { hint },
    )
  }
}

/** Copies PostgreSQL to a new data directory. The database stays, with a note that its store has moved. */
export async function migrateToDirectory(options: Options): Promise<Migrated> {
  const { keysDir, onProgress } = options
  const address = addressOfFrom(options)
  const from = displayAddress(address)
  const store = await openSource(address, log)
  try {
    const { database, ask, storeId } = store
    if (keysDir !== undefined) {
      const keys = await ask<{ rec: KeyRecord }>('select rec from rsm.keys')
      await checkKeys(
        keysDir,
        keys.map(({ rec }) => rec),
      )
    }
    const { directory, value: sums } = await fillDirectory(options.directory, {
      what: 'filled',
      async fill(temporary) {
        const sums = await copyStore(readPostgres(database), createDirectoryWriter(temporary), (kind, sum) =>
          onProgress('moved', kind, sum),
        )
        const { reader } = await readDirectory(temporary)
        await compare(sums, reader, onProgress)
        return sums
      },
      placed: (path) => closeStore(ask, `this store has moved to ${path}`, false),
    })
    return {
      from,
      to: directory,
      storeId,
      moved: countsOf(sums),
      keysDir: resolve(keysDir ?? join(directory, 'keys')),
    }
  } finally {
    await store.close()
  }
}
