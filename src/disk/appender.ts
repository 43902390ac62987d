import { fdatasync, write } from 'node:fs'
import { promisify } from 'node:util'

const writing = promisify(write)
const syncing = promisify(fdatasync)
/** Bytes of one write: pieces from a connection are small, and each write wakes two threads. */
const batchBytes = 256 * 1024
/** Batches that may queue, so that the reader of a connection stays busy while the disk is slow. */
const mostWaiting = 4
/** Bytes between two syncs, so that a large file does not wait for one long sync at its end. */
const unsyncedBytes = 16 * 1024 * 1024
/** Free batch buffers, shared by all files: new ones would be reclaimed only by a full garbage collection. */
const spare: Buffer[] = []
const mostSpare = 8

/** Writes to an open file from an offset on; copies its input, and collects batches during a write. */
export class Appender {
  readonly #fd: number
  #batch: Buffer | null = null
  #filled = 0
  #at: number
  /** Writes in flight or queued, in order; the last one settles after all others. */
  #under: Promise<void>[] = []
  readonly #isSynced: boolean
  #unsynced = 0
  #syncing: Promise<void> | null = null
  /** The kernel reports a failed sync only once, so the final sync would succeed. */
  #fault: { readonly error: unknown } | null = null

  /** `isSynced`: sync while writing, because the file must be durable at the end. */
  constructor(fd: number, { at = 0, isSynced = false }: { at?: number; isSynced?: boolean } = {}) {
    this.#fd = fd
    this.#at = at
    this.#isSynced = isSynced
  }

  /** Rejects with the system error of this piece or an earlier one. */
  async write(piece: Uint8Array): Promise<void> {
    for (let from = 0; from < piece.length; ) {
      const batch = this.#batch ?? this.#taken()
      const part = piece.subarray(from, from + batchBytes - this.#filled)
      batch.set(part, this.#filled)
      this.#filled += part.length
      from += part.length
      if (this.#filled === batchBytes) await this.#next()
    }
  }

  /** Resolves when everything is written; the caller still has to sync the file. */
  async end(): Promise<void> {
    await this.#next()
    await this.#under.at(-1)
    await this.#syncing
    if (this.#fault) throw this.#fault.error
  }

  /** Resolves when no write is in flight; only then may the file be closed. */
  async settled(): Promise<void> {
    await this.#under.at(-1)?.catch(() => undefined)
    await this.#syncing
  }

  #taken(): Buffer {
    this.#batch = spare.pop() ?? Buffer.allocUnsafeSlow(batchBytes)
    return this.#batch
  }

  async #next(): Promise<void> {
    if (this.#under.length === mostWaiting) await this.#under.shift()
    const batch = this.#batch
    if (batch === null) return
    this.#batch = null
    const written = this.#put(batch, this.#filled, this.#under.at(-1))
    this.#under.push(written)
    this.#filled = 0
    // The next write or `end` reports the error.
    written.catch(() => undefined)
  }

  /** Writes after `before`; if that failed, this batch is not written. */
  async #put(batch: Buffer, length: number, before: Promise<void> | undefined): Promise<void> {
    await before
    for (let done = 0; done < length; ) {
      const { bytesWritten } = await writing(this.#fd, batch, done, length - done, this.#at)
      done += bytesWritten
      this.#at += bytesWritten
      this.#unsynced += bytesWritten
    }
    if (spare.length < mostSpare) spare.push(batch)
    if (this.#fault) throw this.#fault.error
    if (this.#isSynced && this.#unsynced >= unsyncedBytes) this.#sync()
  }

  #sync(): void {
    if (this.#syncing) return
    this.#unsynced = 0
    this.#syncing = syncing(this.#fd)
      .catch((error: unknown) => {
        this.#fault = { error }
      })
      .finally(() => {
        this.#syncing = null
      })
  }
}
