import { type BigIntStats, closeSync, fdatasync, fstatSync, read, readSync, write } from 'node:fs'
import { promisify } from 'node:util'
import { refusedBy } from './failure.ts'
import type { OpenDirectory } from './open-directory.ts'

/** Largest text that is compared line by line, in bytes (contract §13). */
export const longestText = 1024 * 1024

const pieceBytes = 1024 * 1024

const reading = promisify(read)

interface ReadRange {
  readonly from?: number
  /** Exclusive end; a shorter file ends earlier. */
  readonly to?: number
  readonly pieceBytes: number
  /** Reuses two buffers: a piece is valid until the next one is requested. */
  readonly isReused?: boolean
}

/** The first `size` bytes of an open file. Throws a `Failure` that names `path` if it cannot be read. */
export async function* bytesOf(
  fd: number,
  size: number = Number.POSITIVE_INFINITY,
  path?: string,
): AsyncGenerator<Buffer> {
  try {
    yield* piecesOf(fd, { to: size, pieceBytes })
  } catch (error) {
    throw path === undefined ? error : refusedBy(error, path, 'read')
  }
}

/**
 * The bytes of an open file; reads the next piece while one is used. A Node stream would close the descriptor
 * when its reader stops early.
 */
export async function* piecesOf(
  fd: number,
  { from = 0, to = Number.POSITIVE_INFINITY, pieceBytes, isReused = false }: ReadRange,
): AsyncGenerator<Buffer> {
  const spare: Buffer[] = []
  const filled = async (at: number) => {
    const length = Math.min(pieceBytes, to - at)
    const buffer = spare.pop() ?? Buffer.allocUnsafeSlow(length)
    const { bytesRead } = await reading(fd, buffer, 0, Math.min(buffer.length, length), at)
    return buffer.subarray(0, bytesRead)
  }
  const piece = (at: number) => {
    const bytes = filled(at)
    // The error is thrown when the piece is awaited.
    bytes.catch(() => undefined)
    return bytes
  }
  let next = piece(from)
  try {
    for (let at = from; at < to; ) {
      const bytes = await next
      at += bytes.length
      if (bytes.length === 0) return
      if (at < to) next = piece(at)
      yield bytes
      if (isReused) spare.push(bytes)
    }
  } finally {
    // The caller may close the file only after the last read.
    await next.catch(() => undefined)
  }
}

export async function whole(pieces: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = []
  for await (const piece of pieces) all.push(piece)
  return all.length === 1 && all[0] !== undefined ? all[0] : Buffer.concat(all)
}

/** Reads a file up to 1 MiB, even if it has grown. */
export function readSmall(directory: OpenDirectory, name: string): Buffer {
  const fd = directory.openFile(name)
  try {
    const bytes = Buffer.alloc(Math.min(longestText, fstatSync(fd).size))
    let length = 0
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(fd, bytes, length, bytes.length - length, length)
    return bytes.subarray(0, length)
  } finally {
    closeSync(fd)
  }
}

/**
 * Size of an open file; null if the kernel generates it on reading, as in /proc and /sys: it then holds more
 * or fewer bytes than its size although it did not change. Throws `Failure` if it cannot be read.
 */
export function sizeOf(fd: number, before: BigIntStats, path: string): number | null {
  const size = Number(before.size)
  try {
    const isMade = hasByteAt(fd, size) || (size > 0 && !hasByteAt(fd, size - 1))
    return isMade && !hasChanged(fd, before) ? null : size
  } catch (error) {
    throw refusedBy(error, path, 'read')
  }
}

export function hasChanged(fd: number, before: BigIntStats): boolean {
  const after = fstatSync(fd, { bigint: true })
  return after.size !== before.size || after.mtimeNs !== before.mtimeNs || after.ctimeNs !== before.ctimeNs
}

const hasByteAt = (fd: number, at: number) => readSync(fd, Buffer.alloc(1), 0, 1, at) > 0

const writing = promisify(write)
const syncing = promisify(fdatasync)
/** Bytes of one write: pieces from a connection are small, and each write wakes two threads. */
const batchBytes = 256 * 1024
/** Batches that may queue, so that the reader of a connection stays busy while the disk is slow. */
const mostWaiting = 4
/** Bytes between two syncs, so that a large file does not wait for one long sync at its end. */
const unsyncedBytes = 16 * 1024 * 1024
/** Free batch buffers, shared by all files: new ones would be reclaimed only by a full garbage collection. */
const spareBatches: Buffer[] = []
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
    this.#batch = spareBatches.pop() ?? Buffer.allocUnsafeSlow(batchBytes)
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
    if (spareBatches.length < mostSpare) spareBatches.push(batch)
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
