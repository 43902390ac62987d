import { createHash, hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'

/** SHA-256 of the concatenated pieces (strings as UTF-8), hex. */
export function sha256(...pieces: (string | Uint8Array)[]): string {
  const [only] = pieces
  if (only !== undefined && pieces.length === 1) return hash('sha256', only, 'hex')
  const whole = createHash('sha256')
  for (const piece of pieces) whole.update(piece)
  return whole.digest('hex')
}

/** SHA-256 of a file of any size, hex. */
export async function sha256OfFile(path: string): Promise<string> {
  const whole = createHash('sha256')
  await pipeline(createReadStream(path), whole)
  return whole.digest('hex')
}
