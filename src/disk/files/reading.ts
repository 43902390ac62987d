import { type BigIntStats, fstatSync, readSync, statfsSync } from 'node:fs'
import { piecesOf } from '../pieces.ts'
import { Failure } from './failure.ts'

const pieceBytes = 1024 * 1024
/** PROC_SUPER_MAGIC (statfs(2)). */
const procfs = 0x9fa0

/** The bytes of an open file, from its first on: at most so many. */
export const bytesOf = (fd: number, size: number = Number.POSITIVE_INFINITY): AsyncGenerator<Buffer> =>
  piecesOf(fd, { to: size, pieceBytes })

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

/** Whether an open file does not have the bytes that its size promises, of which so many were read: the kernel makes it as it is read. */
export const hasOtherSize = (fd: number, size: number, read: number): boolean =>
  read !== size || hasByteAt(fd, size)

/** What the kernel makes as it is read, as the memory of a process. Throws `Failure`. */
export function assertOnDisk(fd: number, path: string): void {
  const isMade =
    statfsSync(`/proc/self/fd/${fd}`).type === procfs || (hasByteAt(fd, 0) && fstatSync(fd).size === 0)
  if (isMade) throw new Failure(`${path} is made by the kernel as it is read, and lies on no disk`)
}
