import { type BigIntStats, closeSync, fstatSync, read, readSync } from 'node:fs'
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
