import { createHash, hash } from 'node:crypto'

/** SHA-256 of these pieces one after the other (a text's UTF-8), hex. */
export function sha256(...pieces: (string | Uint8Array)[]): string {
  const [only] = pieces
  if (only !== undefined && pieces.length === 1) return hash('sha256', only, 'hex')
  const whole = createHash('sha256')
  for (const piece of pieces) whole.update(piece)
  return whole.digest('hex')
}

/** Bytes that stay the same as long as the process lives. */
export interface UnchangingFile {
  mediaType: string
  bytes: Buffer
  /** RFC 9110 §8.8.3: quotes and all. */
  etag: string
}

export function unchangingFile(mediaType: string, bytes: Buffer): UnchangingFile {
  return { mediaType, bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` }
}
