import { fstatSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { RsmError } from '../core/errors.ts'
import { type Disk, failedLog, hasRoom, isDiskFull, LogDeleted, realDisk, writeWhole } from './durable.ts'

/** An open file to append to; bytes past `size` are not part of the log. */
export interface LogFile {
  readonly path: string
  readonly handle: FileHandle
  readonly size: number
}

/** One append; it ends before byte `end` of the file. */
export interface Appended<T> {
  readonly item: T
  readonly length: number
  readonly end: number
}

/** Why appends are refused: `full` may pass; the others last until the log is reopened. */
export type LogFault = 'full' | 'deleted' | 'failed'

export interface AppendLogOptions<T> {
  /** The log's name in messages, such as `the journal`. */
  readonly name: string
  /**
   * When an append resolves.
   * `batch`: durable; each batch is synced before the next is written, so that callers that return at once
   * share an fsync.
   * `behind`: durable; the next batch is written during the fsync, so that readers do not wait for it.
   * `never`: written; `sync` makes it durable.
   */
  readonly sync: 'batch' | 'behind' | 'never'
  /**
   * Error message while the disk is full. The log then refuses appends until a probe finds room; any other
   * failed write is final. Without it each append tries the disk again and rejects with its error; only a
   * failed fsync is final.
   */
  readonly whenFull?: string
  /** Milliseconds between probes of a full disk; 1000 by default. */
  readonly probeMilliseconds?: number | undefined
  /** Hint for when the file was deleted under the process; without it the log does not check. */
  readonly whenDeleted?: string
  /** Waits until the log may sync; call the result when the sync has ended. */
  readonly turn?: () => Promise<() => void>
  /** Runs before a batch is written; if it rejects, the batch is refused as if by the disk. */
  readonly before?: () => Promise<void>
  /** Runs after a batch is written and before it counts; if it rejects, the batch is truncated again. */
  readonly beside?: (batch: readonly Appended<T>[]) => Promise<void>
  /** The batch is in the file and can be read. */
  readonly written?: (batch: readonly Appended<T>[]) => void
  /** Called after an fsync with its duration in seconds and the batch that is now durable. */
  readonly synced?: (seconds: number, batch: readonly Appended<T>[]) => void
  /** Called before all pending appends are refused: data that is not durable by now is lost. */
  readonly refused?: (fault: LogFault, error: unknown) => void
  readonly resumed?: () => void
  readonly disk?: Disk | undefined
}

interface Waiting<T> extends Appended<T> {
  readonly pieces: readonly Uint8Array[]
  end: number
  readonly resolve: (end: number) => void
  readonly reject: (error: unknown) => void
}

/** Bytes of one write; a larger append is written alone. */
const maxBatch = 8 * 1024 * 1024
/** A file that only grows. Group commit: appends that arrive during a write or fsync share the next one. */
export class AppendLog<T = undefined> {
  /** Error for refused appends; null while the log accepts them. */
  refusal: RsmError | null = null
  readonly #options: AppendLogOptions<T>
  readonly #disk: Disk
  #file: LogFile
  #size: number
  /** Durable bytes. */
  #synced: number
  #isDirty = false
  #isFinal = false
  #isClosed = false
  #waiting: Waiting<T>[] = []
  /** Written, not yet durable. */
  #written: Waiting<T>[] = []
  #between: (() => Promise<void>)[] = []
  #running: Promise<void> | null = null
  #syncing: Promise<void> | null = null
  #probing: NodeJS.Timeout | undefined

  constructor(file: LogFile, options: AppendLogOptions<T>) {
    this.#file = file
    this.#size = file.size
    this.#synced = file.size
    this.#options = options
    this.#disk = options.disk ?? realDisk
  }

  /** Bytes of complete appends in the file. */
  get size(): number {
    return this.#size
  }

  get queueLength(): number {
    return this.#waiting.length
  }

  /**
   * Appends the pieces as one, in call order; resolves to their end offset. An empty append resolves with
   * those before it. Rejects with `refusal` (`unavailable`), or with the error of the disk.
   */
  append(pieces: readonly Uint8Array[], item = undefined as T): Promise<number> {
    if (this.#isClosed) return Promise.reject(new RsmError('unavailable', `${this.#options.name} is closed`))
    if (this.refusal !== null) return Promise.reject(this.refusal)
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
    if (length === 0 && this.#running === null && this.#syncing === null) return Promise.resolve(this.#size)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ pieces, item, length, end: 0, resolve, reject })
      this.#running ??= this.#run()
    })
  }

  /** Makes everything written so far durable. Rejects once the log has failed. */
  async sync(): Promise<void> {
    this.#syncing ??= this.#syncAll()
    await this.#syncing
    if (this.#isFinal) throw this.refusal
  }

  /** Runs `work` between two batches, when everything written is durable. */
  exclusive(work: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#between.push(() => work().then(resolve, reject))
      this.#running ??= this.#run()
    })
  }

  /** Continues in another file and closes this one; call it within `exclusive`. */
  async moveTo(file: LogFile): Promise<void> {
    const { handle } = this.#file
    this.#file = file
    this.#size = file.size
    this.#synced = file.size
    await handle.close()
  }

  fail(error: unknown): void {
    this.#refuse('failed', error, [])
  }

  async idle(): Promise<void> {
    while (this.#running !== null || this.#syncing !== null) await (this.#running ?? this.#syncing)
  }

  /** Refuses new appends, waits for those in flight, and closes the file. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#probing)
    await this.idle()
    clearTimeout(this.#probing)
    await this.#file.handle.close()
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0 || this.#between.length > 0) {
      // Callers whose append has just become durable append again within this turn: let them join the batch.
      if (this.#options.sync !== 'never') await setImmediate()
      for (const work of this.#between.splice(0)) {
        await this.#syncing
        await work()
      }
      const batch = this.#take()
      if (batch.length === 0) continue
      try {
        await this.#write(batch)
      } catch (error) {
        // Earlier writes may still become durable.
        await this.#syncing
        await this.#cutBack(this.#size, error, batch)
        continue
      }
      if (this.#options.sync === 'never') {
        for (const { end, resolve } of batch) resolve(end)
        continue
      }
      this.#written.push(...batch)
      this.#syncing ??= this.#syncAll()
      if (this.#options.sync === 'batch') await this.#syncing
    }
    // Cleared in the same turn as the last queue check, so that a later append starts a new run.
    this.#running = null
  }

  #take(): Waiting<T>[] {
    let bytes = 0
    const tooMuch = this.#waiting.findIndex(({ length }, at) => {
      bytes += length
      return at > 0 && bytes > maxBatch
    })
    return this.#waiting.splice(0, tooMuch < 0 ? this.#waiting.length : tooMuch)
  }

  async #write(batch: readonly Waiting<T>[]): Promise<void> {
    if (this.#isFinal) throw this.refusal
    let end = this.#size
    for (const one of batch) one.end = end += one.length
    const pieces = batch.flatMap(({ pieces }) => pieces)
    if (pieces.length > 0) {
      await this.#options.before?.()
      await writeWhole(this.#file.handle.fd, Buffer.concat(pieces), this.#size, this.#disk)
      await this.#options.beside?.(batch)
      this.#size = end
      this.#isDirty = true
    }
    this.#options.written?.(batch)
  }

  /** A full disk writes short before it fails: cut off bytes past the last good append. */
  async #cutBack(size: number, error: unknown, batch: readonly Waiting<T>[]): Promise<void> {
    let fault: LogFault = this.#options.whenFull === undefined || isDiskFull(error) ? 'full' : 'failed'
    await this.#disk.truncate(this.#file.handle.fd, size).catch(() => {
      fault = 'failed'
    })
    this.#size = size
    this.#refuse(fault, error, batch)
  }

  async #syncAll(): Promise<void> {
    do {
      const done = await this.#options.turn?.()
      const batch = this.#written
      this.#written = []
      try {
        await this.#syncBatch(batch)
        for (const { end, resolve } of batch) resolve(end)
      } catch (error) {
        const { sync, whenFull } = this.#options
        if (error instanceof LogDeleted) this.#refuse('deleted', error, batch)
        else if (sync !== 'batch' || whenFull === undefined) this.#refuse('failed', error, batch)
        // Some file systems report a full disk only when they sync. Nothing was written after this batch:
        // truncate it.
        else await this.#cutBack(this.#synced, error, batch)
      } finally {
        done?.()
      }
    } while (this.#written.length > 0)
    this.#syncing = null
  }

  async #syncBatch(batch: readonly Waiting<T>[]): Promise<void> {
    if (this.#isFinal) throw this.refusal
    if (!this.#isDirty) return
    this.#isDirty = false
    const { handle, path } = this.#file
    const size = this.#size
    const start = performance.now()
    await this.#disk.datasync(handle.fd)
    this.#options.synced?.((performance.now() - start) / 1000, batch)
    const { whenDeleted } = this.#options
    // The deleted file exists only while we hold it open: further writes would be lost with this process.
    if (whenDeleted !== undefined && fstatSync(handle.fd).nlink === 0) throw new LogDeleted(path, whenDeleted)
    this.#synced = size
  }

  /** Later appends may build on earlier ones: if one fails, all pending appends fail too. */
  #refuse(fault: LogFault, error: unknown, batch: readonly Waiting<T>[]): void {
    const { name, whenFull, refused } = this.#options
    if (!this.#isFinal) {
      // After a failed fsync the page cache is unreliable, so a retry would prove nothing.
      this.#isFinal = fault !== 'full'
      if (error instanceof LogDeleted) this.refusal = error
      else if (fault === 'failed') this.refusal = failedLog(name, error)
      else if (whenFull !== undefined)
        this.refusal = new RsmError('unavailable', whenFull, { cause: error, retryAfter: 5 })
      refused?.(fault, error)
      if (fault === 'full' && whenFull !== undefined) this.#probe()
    }
    const written = this.#isFinal ? this.#written.splice(0) : []
    const reason = whenFull === undefined ? error : this.refusal
    for (const { reject } of [...batch, ...written, ...this.#waiting.splice(0)]) reject(reason)
  }

  #probe(): void {
    if (this.#isClosed) return
    this.#probing = setTimeout(() => {
      void hasRoom(this.#file.path, this.#disk).then((isFree) => {
        if (this.#isClosed || this.#isFinal) return
        if (!isFree) return this.#probe()
        this.refusal = null
        this.#options.resumed?.()
      })
    }, this.#options.probeMilliseconds ?? 1000)
  }
}
