import { statfs } from 'node:fs/promises'

/** Bytes of a file system: all of them, and those that this process may still write. */
export interface Room {
  size: number
  available: number
}

/** The file system of a directory; null if it cannot be read. */
export async function roomOf(directory: string): Promise<Room | null> {
  const figures = await statfs(directory).catch(() => null)
  if (figures === null) return null
  const { blocks, bavail, bfree, bsize } = figures
  // Root may also use the blocks that the file system reserves.
  return { size: blocks * bsize, available: bsize * (process.getuid?.() === 0 ? bfree : bavail) }
}
