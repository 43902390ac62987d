import { statfs } from 'node:fs/promises'

/** Bytes of a file system: all of them, and those that the server may still write. */
export interface Room {
  size: number
  available: number
}

/** The file system of a directory; null where it gives no answer, so that a scrape tells the rest. */
export async function roomOf(directory: string): Promise<Room | null> {
  const figures = await statfs(directory).catch(() => null)
  if (figures === null) return null
  const { blocks, bavail, bsize } = figures
  return { size: blocks * bsize, available: bavail * bsize }
}
