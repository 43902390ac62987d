import { write } from 'node:fs'
import { promisify } from 'node:util'

const writing = promisify(write)
/** Bytes that are written at once: pieces of a connection are small, and each write wakes two threads. */
const batchBytes = 256 * 1024

/** Writes to an open file from one place on: while one batch is written the next one comes. Keeps none of the pieces that it is given. */
export class Appender {
  readonly #fd: number
  #batch: Buffer | null = null
  #filled = 0
  /** Nothing is written of it. */
  #spare: Buffer | null = null
  #at: number
  #under: Promise<void> = Promise.resolve()

  constructor(fd: number, at = 0) {
    this.#fd = fd
    this.#at = at
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

  /** Settles when all is written. */
  async end(): Promise<void> {
    await this.#next()
    await this.#under
  }

  /** Settles when nothing is being written any more: only then the file may be closed. */
  async settled(): Promise<void> {
    await this.#under.catch(() => undefined)
  }

  #taken(): Buffer {
    const batch = this.#spare ?? Buffer.allocUnsafeSlow(batchBytes)
    this.#batch = batch
    this.#spare = null
    return batch
  }

  async #next(): Promise<void> {
    await this.#under
    const batch = this.#batch
    if (batch === null) return
    this.#batch = null
    this.#under = this.#put(batch, this.#filled)
    this.#filled = 0
    // Whoever writes next hears of it.
    this.#under.catch(() => undefined)
  }

  async #put(batch: Buffer, length: number): Promise<void> {
    for (let done = 0; done < length; ) {
      const { bytesWritten } = await writing(this.#fd, batch, done, length - done, this.#at)
      done += bytesWritten
      this.#at += bytesWritten
    }
    this.#spare = batch
  }
}
