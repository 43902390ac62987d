import { type BigIntStats, fstatSync, readSync } from 'node:fs'
import { piecesOf } from '../pieces.ts'
import { refusedBy } from './failure.ts'

const pieceBytes = 1024 * 1024

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

export async function whole(pieces: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = []
  for await (const piece of pieces) all.push(piece)
  return all.length === 1 && all[0] !== undefined ? all[0] : Buffer.concat(all)
}

const hasByteAt = (fd: number, at: number) => readSync(fd, Buffer.alloc(1), 0, 1, at) > 0

/** Whether something open is another one since, as far as the system tells. */
export function hasChanged(fd: number, before: BigIntStats): boolean {
  const after = fstatSync(fd, { bigint: true })
  return after.size !== before.size || after.mtimeNs !== before.mtimeNs || after.ctimeNs !== before.ctimeNs
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
