import { fdatasync, ftruncate, write } from 'node:fs'
import { open, rm, statfs } from 'node:fs/promises'
import { promisify } from 'node:util'
import { temporaryName } from './durable.ts'

/** Bytes that must fit before a full disk counts as free again. */
const probeBytes = 64 * 1024

/** The system calls that durability depends on; tests inject faults here. */
export interface Disk {
  /** Resolves to the number of bytes written, which may be fewer than given. */
  write(descriptor: number, data: Uint8Array, position: number): Promise<number>
  datasync(descriptor: number): Promise<void>
  truncate(descriptor: number, size: number): Promise<void>
}

export const realDisk: Disk = {
  write: (descriptor, data, position) =>
    new Promise((resolve, reject) => {
      write(descriptor, data, 0, data.length, position, (error, written) =>
        error === null ? resolve(written) : reject(error),
      )
    }),
  datasync: promisify(fdatasync),
  truncate: promisify(ftruncate),
}

/** Bytes of a file system: total, and still writable by this process. */
export interface Room {
  size: number
  available: number
}

export async function writeWhole(
  descriptor: number,
  data: Uint8Array,
  position: number,
  disk: Disk = realDisk,
): Promise<void> {
  for (let done = 0; done < data.length; )
    done += await disk.write(descriptor, data.subarray(done), position + done)
}

/** Whether a file fits beside `path`. The probe is unlinked before it grows, so that no crash leaves it. */
export async function hasRoom(path: string, disk: Disk): Promise<boolean> {
  try {
    const beside = temporaryName(path)
    const handle = await open(beside, 'wx', 0o600)
    try {
      await rm(beside)
      await writeWhole(handle.fd, Buffer.alloc(probeBytes), 0, disk)
      await disk.datasync(handle.fd)
    } finally {
      await handle.close()
    }
    return true
  } catch {
    return false
  }
}

/** Room of a directory's file system; null if it cannot be read. */
export async function roomOf(directory: string): Promise<Room | null> {
  const figures = await statfs(directory).catch(() => null)
  if (figures === null) return null
  const { blocks, bavail, bfree, bsize } = figures
  // Root may also use the reserved blocks.
  return { size: blocks * bsize, available: bsize * (process.getuid?.() === 0 ? bfree : bavail) }
}
