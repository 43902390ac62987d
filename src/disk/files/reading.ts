import { type BigIntStats, fstatSync, read, readSync } from 'node:fs'
import { promisify } from 'node:util'
import { refusedBy } from './failure.ts'

const pieceBytes = 1024 * 1024

const reading = promisify(read)

interface ReadRange {
  readonly from?: number
  /** Fewer bytes come of a file that is shorter. */
  readonly to?: number
  /** Bytes of one piece. */
  readonly pieceBytes: number
  /** A piece holds until the next one is asked for: two buffers do for all. */
  readonly isReused?: boolean
}

/** The bytes of an open file, from its first on: at most so many. Throws `Failure` that names `path` where it cannot be read. */
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
 * The bytes of an open file; the next piece is read while one is used. A stream of Node's would close what it did not open where
 * its reader leaves early.
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
    // Whoever asks for it hears of it.
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
    // The file may be closed only then.
    await next.catch(() => undefined)
  }
}

export async function whole(pieces: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = []
  for await (const piece of pieces) all.push(piece)
  return all.length === 1 && all[0] !== undefined ? all[0] : Buffer.concat(all)
}

/**
 * The size of an open file; null where it holds more or fewer bytes than it says and did not change: the kernel makes it as it is
 * read, as in /proc and /sys, and only its end says its size. Throws `Failure` where it cannot be read.
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

/** Whether something open is another one since, as far as the system tells. */
export function hasChanged(fd: number, before: BigIntStats): boolean {
  const after = fstatSync(fd, { bigint: true })
  return after.size !== before.size || after.mtimeNs !== before.mtimeNs || after.ctimeNs !== before.ctimeNs
}

const hasByteAt = (fd: number, at: number) => readSync(fd, Buffer.alloc(1), 0, 1, at) > 0
