import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../../../core/errors.ts'
import { openDataDirectory } from '../../../disk/data-directory.ts'
import { temporaryName } from '../../../disk/durable.ts'
import type { Records } from '../../seams/records.ts'
import type { Store } from '../../seams/store.ts'
import { type Commit, Committer } from './committer.ts'
import { Compaction } from './compaction.ts'
import { type Disk, realDisk, timed } from './journal-file.ts'
import { type Log, type Recovered, recover } from './recovery.ts'
import { Transactions } from './transactions.ts'

export interface JsonStoreOptions {
  /** A directory of the store's own: created with mode 0700, and locked until `close`. */
  directory: string
  log?: Log
  /**
   * Called once when the disk can't be trusted any more (EIO on fsync): the caller ends the process. Without it the
   * error is thrown where nothing catches it.
   */
  onFatal?: (error: unknown) => void
  /** Least size of the journal, in bytes, at which it is compacted; 32 MiB by default: replaying that takes about half a second. */
  compactAfterBytes?: number
  /** How often a full disk is looked at again; 1000 ms by default. */
  probeMilliseconds?: number
  /** Hears how many seconds each fsync of the journal took. */
  onSync?: (seconds: number) => void
  /** For tests: where faults are put in. */
  disk?: Disk
}

/** The embedded store, and how many writes wait for its journal. */
export interface JsonStore extends Store {
  readonly queueLength: number
}

/** What a probe writes before a full disk counts as free again. */
const probeBytes = 64 * 1024

/**
 * Opens the embedded store (design.md "The embedded store"): everything in memory, every write in a journal that is
 * fsynced before it is acknowledged, and now and then a snapshot.
 * @throws RsmError `conflict` when another process has it open; `unavailable` when its files are damaged, missing or
 * from a newer rsm, naming file and byte offset.
 */
export async function openJsonStore(options: JsonStoreOptions): Promise<JsonStore> {
  const { directory, log = () => undefined, onFatal = crash } = options
  const disk = timed(options.disk ?? realDisk, options.onSync ?? (() => undefined))
  const lock = await openDataDirectory(directory)
  const closing = new AbortController()
  let recovered: Recovered
  try {
    recovered = await recover(lock.path, disk, log, closing.signal)
  } catch (error) {
    await lock.release()
    throw explain(error, lock.path)
  }
  const { model, manifest } = recovered
  const tables = model.data
  const committer = new Committer(recovered.journal, {
    writing: () => compaction.raiseFormat(),
    durable: (commits) => {
      for (const commit of commits) settle(commit)
      compaction.startIfDue()
    },
    dropped: () => transactions.drop(),
    full: (error) => {
      log('error', 'the disk is full: writes are refused', { error: String(error) })
      probe()
    },
    deleted: (error) => log('error', error.message, { error: String(error) }),
    fatal: onFatal,
  })
  const transactions = new Transactions(tables, committer)
  const compaction = new Compaction(recovered, committer, {
    directory: lock.path,
    disk,
    log,
    signal: closing.signal,
    compactAfterBytes: options.compactAfterBytes ?? 32 * 1024 * 1024,
  })

  function settle({ sequence, changes, lastIds }: Commit): void {
    for (const change of changes) tables.apply(change)
    for (const [noun, id] of lastIds) tables.raiseId(noun, id)
    tables.sequence = sequence
    transactions.settle(changes)
  }

  let probing: NodeJS.Timeout | undefined
  function probe(): void {
    probing = setTimeout(() => {
      void tryDisk(lock.path).then((free) => {
        if (closing.signal.aborted) return
        if (!free) return probe()
        committer.resume()
        log('info', 'the disk has room again: writes are taken', {})
      })
    }, options.probeMilliseconds ?? 1000)
  }

  let closed: Promise<void> | null = null
  async function close(): Promise<void> {
    await transactions.idle()
    closing.abort()
    clearTimeout(probing)
    await compaction.idle()
    await committer.idle()
    await committer.file.close()
    await lock.release()
  }

  compaction.startIfDue()
  return {
    storeId: manifest.storeId,
    get sequence() {
      return tables.sequence
    },
    revision: (noun) => tables.revision(noun),
    get readOnlyReason() {
      return committer.refusal?.message ?? null
    },
    get queueLength() {
      return committer.queueLength
    },
    get: async (noun, id) => tables.get(noun, id) as Records[typeof noun] | undefined,
    find: async (noun, index, key) => tables.find(noun, index, key) as Records[typeof noun][],
    page: async (noun, { offset, limit, order }) => {
      const total = tables.count(noun)
      const start = order === 'asc' ? offset : Math.max(0, total - offset - limit)
      const end = order === 'asc' ? offset + limit : Math.max(0, total - offset)
      const items = tables.slice(noun, start, end) as Records[typeof noun][]
      return { items: order === 'asc' ? items : items.reverse(), total }
    },
    all: async (noun) => tables.slice(noun) as Records[typeof noun][],
    transact: (work) =>
      closed === null
        ? transactions.run(work)
        : Promise.reject(new RsmError('unavailable', 'the store is closed')),
    close: () => (closed ??= close()),
  }
}

/** Whether something of fair size can be written and synced. */
async function tryDisk(directory: string): Promise<boolean> {
  const path = temporaryName(join(directory, 'probe'))
  try {
    const handle = await open(path, 'wx', 0o600)
    try {
      await handle.writeFile(Buffer.alloc(probeBytes))
      await handle.sync()
    } finally {
      await handle.close()
    }
    return true
  } catch {
    return false
  } finally {
    await rm(path, { force: true })
  }
}

function crash(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}

function explain(error: unknown, directory: string): unknown {
  if (error instanceof RsmError || !(error instanceof Error) || !('code' in error)) return error
  return new RsmError('unavailable', `the store in ${directory} can not be opened: ${error.message}`, {
    hint: 'check that the disk has room and that the files belong to the user who runs rsm',
    cause: error,
  })
}
