import { fdatasync, write } from 'node:fs'
import { promisify } from 'node:util'

const writing = promisify(write)
const syncing = promisify(fdatasync)
/** Bytes that are written at once: pieces of a connection are small, and each write wakes two threads. */
const batchBytes = 256 * 1024
/** Batches that may wait to be written: whoever reads from a connection is kept busy while the disk has a slow moment. */
const mostWaiting = 4
/** Bytes that may wait for the disk: else all of a large file would wait for the sync at its end. */
const unsyncedBytes = 16 * 1024 * 1024
/** Batches of which nothing is written, of all files: one made anew for each would wait for a collection of the whole heap. */
const spare: Buffer[] = []
const mostSpare = 8

/**
 * Writes to an open file from a given place on. It collects the next batches while it writes one, and copies the pieces that it is
 * given.
 */
export class Appender {
  readonly #fd: number
  #batch: Buffer | null = null
  #filled = 0
  #at: number
  /** The writes that have begun or wait, in order; the last one settles when all have. */
  #under: Promise<void>[] = []
  readonly #isSynced: boolean
  #unsynced = 0
  #syncing: Promise<void> | null = null
  /** The system tells of a failed sync once: the sync at the end would know nothing of it. */
  #fault: { readonly error: unknown } | null = null

  /** `isSynced`: the file is to be durable in the end, and goes to disk while it is written. */
  constructor(fd: number, { at = 0, isSynced = false }: { at?: number; isSynced?: boolean } = {}) {
    this.#fd = fd
    this.#at = at
    this.#isSynced = isSynced
  }

  /** Rejects with what the system said of this piece or one before it. */
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

  /** Settles when all is written; the file is still to be synced. */
  async end(): Promise<void> {
    await this.#next()
    await this.#under.at(-1)
    await this.#syncing
    if (this.#fault) throw this.#fault.error
  }

  /** Settles when nothing is being written any more: only then the file may be closed. */
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
    // Whoever writes next hears of it.
    written.catch(() => undefined)
  }

  /** Once the one before is written; what follows on a fault is not. */
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
