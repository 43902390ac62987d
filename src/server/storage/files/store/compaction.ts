import type { Low } from 'lowdb'
import { Mutex } from '../../../../core/mutex.ts'
import type { AppendLog } from '../../../../disk/append-log.ts'
import { isDiskFull } from '../../../../disk/durable.ts'
import type { Tables } from '../../tables.ts'
import {
  createJournal,
  type Manifest,
  openJournal,
  type PinnedFiles,
  pinFiles,
  writeManifest,
} from './files.ts'
import { type Log, type Recovered, removeLeftovers } from './recovery.ts'

export interface CompactionOptions {
  directory: string
  log: Log
  signal: AbortSignal
  /** The journals may grow to this many bytes, or to the size of the snapshot if that is more. */
  compactAfterBytes: number
}

export class Compaction {
  private readonly model: Low<Tables>
  private readonly snapshot: Recovered['snapshot']
  private readonly journal: AppendLog
  private readonly options: CompactionOptions
  private manifest: Manifest
  private isRaised: boolean
  /** Bytes of the journals since the snapshot, without the open one. */
  private closedBytes: number
  private notBefore = 0
  private readonly mutex = new Mutex()

  constructor(recovered: Recovered, journal: AppendLog, options: CompactionOptions) {
    this.model = recovered.model
    this.snapshot = recovered.snapshot
    this.journal = journal
    this.options = options
    this.manifest = recovered.manifest
    this.isRaised = recovered.isRaised
    this.closedBytes = recovered.journalBytes - recovered.journal.size
  }

  get bytes(): number {
    return this.snapshot.bytes + this.closedBytes + this.journal.size
  }

  startIfDue(): void {
    const bytes = this.closedBytes + this.journal.size
    const limit = Math.max(this.options.compactAfterBytes, this.snapshot.bytes, this.notBefore)
    if (bytes <= limit || !this.mutex.isFree || this.options.signal.aborted) return
    void this.mutex.run(() =>
      this.compact().catch((error: unknown) => {
        if (this.options.signal.aborted) return
        this.notBefore = this.closedBytes + this.journal.size + this.options.compactAfterBytes
        this.options.log('warn', 'compaction failed; the journal keeps growing', { error: String(error) })
      }),
    )
  }

  /** Called before each write: an older version must refuse the store before it contains anything new. */
  async raiseFormat(): Promise<void> {
    if (!this.isRaised) await this.name(this.manifest)
  }

  /** Compacts regardless of the journal's size. If it rejects, the store is unchanged. */
  async now(): Promise<void> {
    await this.mutex.run(() => {
      this.options.signal.throwIfAborted()
      return this.compact()
    })
  }

  /**
   * Opens the store's files as of a moment between two batches, so that they end with a whole transaction.
   */
  async pin(): Promise<PinnedFiles> {
    let pinned: Promise<PinnedFiles> | undefined
    await this.journal.exclusive(async () => {
      pinned = pinFiles(this.options.directory, this.manifest, this.model.data, this.journal.size)
      await pinned
    })
    return pinned as Promise<PinnedFiles>
  }

  async idle(): Promise<void> {
    await this.mutex.idle()
  }

  private async compact(): Promise<void> {
    let written: Promise<void> = Promise.resolve()
    let sequence = 0
    await this.journal.exclusive(async () => {
      await this.rotate()
      sequence = this.model.data.sequence
      // The view is taken before the first write, so later commits go to the new journal only.
      written = this.model.write()
      written.catch(() => undefined)
    })
    await written
    const { snapshot, journals } = this.manifest
    await this.name({
      ...this.manifest,
      snapshot: sequence,
      journals: journals.filter((first) => first > sequence),
      previous: { snapshot, journals: journals.filter((first) => first <= sequence) },
    })
    this.closedBytes = 0
    this.notBefore = 0
    await removeLeftovers(this.options.directory, this.manifest)
  }

  /** Directs later writes to a new journal; the old one is durable to its end by now. */
  private async rotate(): Promise<void> {
    const { directory } = this.options
    const { storeId, journals } = this.manifest
    const first = this.model.data.sequence + 1
    if (journals.at(-1) === first) return
    const next = await openJournal(directory, first, await createJournal(directory, storeId, first))
    try {
      await this.name({ ...this.manifest, journals: [...journals, first] })
    } catch (error) {
      await next.handle.close()
      throw error
    }
    this.closedBytes += this.journal.size
    await this.journal.moveTo(next)
  }

  /** A full disk leaves the old manifest; after any other fault, which one is on disk is unknown. */
  private async name(manifest: Manifest): Promise<void> {
    try {
      await writeManifest(this.options.directory, manifest)
    } catch (error) {
      if (!isDiskFull(error)) this.journal.fail(error)
      throw error
    }
    this.manifest = manifest
    this.isRaised = true
  }
}
