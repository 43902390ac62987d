import { RsmError } from '../../../../core/errors.ts'
import { AppendLog } from '../../../../disk/append-log.ts'
import { openDataDirectory } from '../../../../disk/data-directory.ts'
import type { Disk } from '../../../../disk/durable.ts'
import { type Reserve, roomAgain } from '../../../../disk/reserve.ts'
import type { Found, Query, Store } from '../../ports/store.ts'
import { type AnyRecord, authors, type Id, type Noun, type Records } from '../../records/records.ts'
import type { AnyQuery, Tables } from '../../tables.ts'
import { Compaction } from './compaction.ts'
import type { PinnedFiles } from './files.ts'
import { type Log, type Recovered, recover } from './recovery.ts'
import { Transactions } from './transactions.ts'

export interface JsonStoreOptions {
  /** Directory of the store alone: created with mode 0700, and locked until `close`. */
  directory: string
  log?: Log
  /**
   * Called once when the disk cannot be trusted any more (EIO on fsync): the caller ends the process. By
   * default the error is thrown uncaught.
   */
  onFatal?: (error: unknown) => void
  /** Minimum bytes of a journal to compact; default 32 MiB, which takes about half a second to replay. */
  compactAfterBytes?: number
  /** Milliseconds between checks of a full disk; 1000 by default. */
  probeMilliseconds?: number
  /** Called with the duration of each fsync of the journal. */
  onSync?: (seconds: number) => void
  /** Released when the disk is full. */
  reserve?: Reserve | null
  /** For tests: injects faults. */
  disk?: Disk
}

export interface JsonStore extends Store {
  /** Sequence of the last durable commit; only a restore lowers it. */
  readonly sequence: number
  readonly queueLength: number
  /** Writes a new snapshot and starts a new journal; returns the bytes of all files before and after. */
  compact(): Promise<{ before: number; after: number }>
  /** Opens its files as they are on disk now. */
  pin(): Promise<PinnedFiles>
}

/**
 * Opens the file store: everything in memory, every write in a journal that is fsynced before it is
 * acknowledged, and an occasional snapshot.
 * @throws RsmError `conflict` if another process has it open; `unavailable` if its files are damaged, missing
 * or from a newer rsm, naming file and byte offset.
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
    whenDeleted: 'stop the server, restore its store from a backup, and start it again',
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

/** Cached by record, because records are immutable and there are many long ones. */
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
