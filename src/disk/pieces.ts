import { read } from 'node:fs'
import { promisify } from 'node:util'

const reading = promisify(read)

interface Part {
  readonly from?: number
  /** Fewer bytes come of a file that is shorter. */
  readonly to?: number
  /** Bytes of one piece. */
  readonly pieceBytes: number
  /** A piece holds until the next one is asked for: two buffers do for all. */
  readonly isReused?: boolean
}

/**
 * The bytes of an open file; the next piece is read while one is used. A stream of Node's would close what it did not open where
 * its reader leaves early.
 */
export async function* piecesOf(
  fd: number,
  { from = 0, to = Number.POSITIVE_INFINITY, pieceBytes, isReused = false }: Part,
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
