import { createHash } from 'node:crypto'

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
