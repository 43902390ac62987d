import type { FileHandle } from 'node:fs/promises'

/** A system takes no more pieces in one write (IOV_MAX). */
const mostPieces = 1024

/** Writes all pieces one behind the other from a position, however short the system writes. */
export async function writeAll(
  file: FileHandle,
  pieces: readonly Uint8Array[],
  position: number,
): Promise<void> {
  let at = position
  for (let first = 0; first < pieces.length; first += mostPieces) {
    const some = pieces.slice(first, first + mostPieces)
    const size = some.reduce((sum, piece) => sum + piece.length, 0)
    const { bytesWritten } = await file.writev(some, at)
    if (bytesWritten < size)
      await writeRest(file, Buffer.concat(some).subarray(bytesWritten), at + bytesWritten)
    at += size
  }
}

async function writeRest(file: FileHandle, rest: Buffer, position: number): Promise<void> {
  for (let done = 0; done < rest.length; ) {
    const { bytesWritten } = await file.write(rest, done, rest.length - done, position + done)
    done += bytesWritten
  }
}
