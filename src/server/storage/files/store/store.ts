import { RsmError } from '../../../../core/errors.ts'
import { AppendLog } from '../../../../disk/append-log.ts'
import { openDataDirectory } from '../../../../disk/data-directory.ts'
import type { Disk } from '../../../../disk/disk.ts'
import { type Reserve, roomAgain } from '../../../../disk/reserve.ts'
import type { Found, Query, Store } from '../../ports/store.ts'
import { type AnyRecord, authors, type Id, type Noun, type Records } from '../../records/records.ts'
import type { AnyQuery } from '../../tables/query.ts'
import type { Tables } from '../../tables/tables.ts'
import { Compaction } from './compaction.ts'
import type { PinnedFiles } from './files.ts'
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
  /** Freed when the disk is full. */
  reserve?: Reserve | null
  /** For tests: where faults are put in. */
  disk?: Disk
}

/** The file store, and what is particular to its files. */
export interface JsonStore extends Store {
  /** The number of the last commit that is durable; it never goes back but by a restore. */
  readonly sequence: number
  /** Writes that wait for the journal. */
  readonly queueLength: number
  /** Writes a new snapshot, so that the journal begins anew; answers the bytes of all before and after. */
  compact(): Promise<{ before: number; after: number }>
  /** Its files as they stand on disk just now. */
  pin(): Promise<PinnedFiles>
}

/**
 * Opens the file store: everything in memory, every write in a journal that is fsynced before it is acknowledged, and
 * now and then a snapshot.
 * @throws RsmError `conflict` when another process has it open; `unavailable` when its files are damaged, missing or
 * from a newer rsm, naming file and byte offset.
 */
export async function openJsonStore(options: JsonStoreOptions): Promise<JsonStore> {
  const { directory, log = () => undefined, onFatal = crash, reserve = null } = options
  const lock = await openDataDirectory(directory)
  const closing = new AbortController()
  let recovered: Recovered
  try {
    recovered = await recover(lock.path, log, closing.signal)
  } catch (error) {
    await lock.release()
    throw explain(error, lock.path)
  }
  const { model, manifest } = recovered
  const tables = model.data
  const journal = new AppendLog(recovered.journal, {
    name: 'the journal',
    sync: 'batch',
    whenFull: 'the disk of the data directory is full; writes are refused until there is room',
    whenDeleted: 'stop the server, bring back its store from a backup, and start it again',
    probeMilliseconds: options.probeMilliseconds,
    before: () => compaction.raiseFormat(),
    synced: (seconds) => options.onSync?.(seconds),
    refused: (fault, error) => {
      transactions.drop()
      if (fault === 'failed') return onFatal(error)
      if (fault === 'full') reserve?.giveUp(error)
      const message =
        fault === 'full' ? 'the disk is full: writes are refused' : String(journal.refusal?.message)
      log('error', message, { error: String(error) })
    },
    resumed() {
      if (reserve?.isGivenUp !== true) log('info', roomAgain, {})
    },
    disk: options.disk,
  })
  const watchers = new Map<Noun, ((id: Id | null) => void)[]>()
  const transactions = new Transactions(tables, journal, (changes) => {
    for (const { noun, id } of changes) for (const changed of watchers.get(noun) ?? []) changed(id)
    compaction.startIfDue()
  })
  const compaction = new Compaction(recovered, journal, {
    directory: lock.path,
    log,
    signal: closing.signal,
    compactAfterBytes: options.compactAfterBytes ?? 32 * 1024 * 1024,
  })

  let closed: Promise<void> | null = null
  async function close(): Promise<void> {
    await transactions.idle()
    closing.abort()
    await compaction.idle()
    await journal.close()
    await lock.release()
  }

  compaction.startIfDue()
  return {
    storeId: manifest.storeId,
    get sequence() {
      return tables.sequence
    },
    get readOnlyReason() {
      return (journal.refusal ?? reserve?.refusal)?.message ?? null
    },
    get queueLength() {
      return journal.queueLength
    },
    get: async (noun, id) => tables.get(noun, id) as Records[typeof noun] | undefined,
    find: async (noun, index, key) => tables.find(noun, index, key) as Records[typeof noun][],
    getMany: async <N extends Noun>(noun: N, ids: readonly Id[]) =>
      ids.map((id) => tables.get(noun, id) as Records[N] | undefined),
    query: async <N extends Noun>(noun: N, query?: Query<N>) =>
      tables.query(noun, (query ?? {}) as AnyQuery) as Found<N>,
    transact(work) {
      const refusal = closed === null ? reserve?.refusal : new RsmError('unavailable', 'the store is closed')
      return refusal ? Promise.reject(refusal) : transactions.run(work)
    },
    watch(noun, changed) {
      watchers.set(noun, [...(watchers.get(noun) ?? []), changed])
    },
    refresh: async () => undefined,
    textBytes: async (noun) => textBytes(tables, noun),
    async compact() {
      const before = compaction.bytes
      await compaction.now()
      return { before, after: compaction.bytes }
    },
    pin: () => compaction.pin(),
    close: () => (closed ??= close()),
  }
}

/** By record: records are immutable, and long ones are many. */
const bytesOf = new WeakMap<object, number>()

function textBytes(tables: Tables, noun: keyof typeof authors): Map<string, number> {
  const records = noun === 'tasks' ? tables.find(noun, 'status', 'RUNNING') : tables.slice(noun)
  const author = authors[noun] as (record: AnyRecord) => string
  const sums = new Map<string, number>()
  for (const record of records) {
    const bytes = bytesOf.get(record) ?? Buffer.byteLength(JSON.stringify(record))
    bytesOf.set(record, bytes)
    sums.set(author(record), (sums.get(author(record)) ?? 0) + bytes)
  }
  return sums
}

function crash(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}

function explain(error: unknown, directory: string): unknown {
  if (error instanceof RsmError || !(error instanceof Error) || !('code' in error)) return error
  return new RsmError('unavailable', `the store in ${directory} cannot be opened: ${error.message}`, {
    hint: 'check that the disk has room and that the files belong to the user who runs rsm',
    cause: error,
  })
}
