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
    let { bytesWritten: done } = await file.writev(some, at)
    const whole = done < size ? Buffer.concat(some) : null
    while (whole && done < size) done += (await file.write(whole, done, size - done, at + done)).bytesWritten
    at += size
  }
}
