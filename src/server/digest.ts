import { createHash } from 'node:crypto'

/** SHA-256 of these pieces one after the other (a text's UTF-8), hex. */
export function sha256(...pieces: (string | Uint8Array)[]): string {
  const hash = createHash('sha256')
  for (const piece of pieces) hash.update(piece)
  return hash.digest('hex')
}
