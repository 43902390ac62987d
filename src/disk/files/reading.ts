import { type BigIntStats, fstatSync, read, statfsSync } from 'node:fs'
import { promisify } from 'node:util'
import { Failure } from './failure.ts'

const reading = promisify(read)
const pieceBytes = 1024 * 1024
/** PROC_SUPER_MAGIC (statfs(2)). */
const procfs = 0x9fa0

/**
 * The bytes of an open file, from its first on: at most so many, fewer where it has shrunk. A stream of Node's would close what
 * it did not open where its reader leaves early.
 */
export async function* bytesOf(fd: number, size: number = Number.POSITIVE_INFINITY): AsyncGenerator<Buffer> {
  for (let at = 0; at < size; ) {
    const piece = Buffer.allocUnsafe(Math.min(pieceBytes, size - at))
    const { bytesRead } = await reading(fd, piece, 0, piece.length, at)
    if (bytesRead === 0) return
    yield piece.subarray(0, bytesRead)
    at += bytesRead
  }
}

/** Whether an open file is another one since, as far as the system tells. */
export function hasChanged(fd: number, before: BigIntStats): boolean {
  const after = fstatSync(fd, { bigint: true })
  return after.size !== before.size || after.mtimeNs !== before.mtimeNs || after.ctimeNs !== before.ctimeNs
}

/** What the kernel makes up as it is read, as the memory of a process. Throws `Failure`. */
export function assertOnDisk(fd: number, path: string): void {
  if (statfsSync(`/proc/self/fd/${fd}`).type === procfs)
    throw new Failure(`${path} is of /proc, and no file that lies anywhere`)
}
