import { randomBytes } from 'node:crypto'
import { RsmError } from '../../core/errors.ts'
import { type Files, WrongOffset } from '../storage/ports/files.ts'
import type { Keys } from '../storage/ports/keys.ts'
import type { FileRecord } from '../storage/records/file.ts'
import { opened, plainSize, sealed, sealedChunk, storedOffset, wholeChunks } from './sealing.ts'

/** The bytes of files as they were given, whether they are stored sealed or not. */
export interface BlobCodec {
  /** The key of a new secret file, as its record holds it. */
  newKey(id: string): string
  /** Bytes that are durable of a file that is not complete; of a secret one whole chunks, as what follows them may be torn. */
  size(file: FileRecord): Promise<number>
  /** As Files.append. `endsHere`: whether a file of so many bytes ends with these. */
  append(
    file: FileRecord,
    offset: number,
    bytes: AsyncIterable<Uint8Array>,
    endsHere: (size: number) => boolean,
  ): Promise<number>
  /** As Files.read. */
  read(file: FileRecord, from: number, to: number): AsyncGenerator<Uint8Array>
}

export function createBlobCodec(files: Files, keys: Pick<Keys, 'seal' | 'open'>): BlobCodec {
  const context = (id: string) => `files/${id}`

  function keyOf({ id, sealedKey }: FileRecord): Buffer {
    try {
      return Buffer.from(keys.open(sealedKey ?? '', context(id)), 'base64')
    } catch (cause) {
      throw new RsmError('gone', `secret file ${id} cannot be opened with the keys of this server`, {
        cause,
      })
    }
  }

  /** The same of a secret file, by what is stored. */
  const sealedOffset = (stored: number): number => wholeChunks(stored) * sealedChunk

  return {
    newKey: (id) => keys.seal(randomBytes(32).toString('base64'), context(id)),
    async size({ id, sealedKey }) {
      const stored = await files.size(id)
      return sealedKey === null ? stored : sealedOffset(stored)
    },
    async append(file, offset, bytes, endsHere) {
      if (file.sealedKey === null) return files.append(file.id, offset, bytes)
      const stored = await files.size(file.id)
      if (offset !== sealedOffset(stored)) throw new WrongOffset(sealedOffset(stored))
      const chunk = wholeChunks(stored)
      const pieces = sealed({ id: file.id, key: keyOf(file) }, bytes, chunk, endsHere)
      try {
        // A kill or a full disk leaves a part of a chunk, behind which nothing could be opened.
        if (stored !== storedOffset(chunk)) await files.cut(file.id, stored, storedOffset(chunk))
        return plainSize(await files.append(file.id, storedOffset(chunk), pieces))
      } catch (error) {
        throw error instanceof WrongOffset ? new WrongOffset(sealedOffset(error.offset)) : error
      }
    },
    async *read(file, from, to) {
      if (from === to) return
      if (file.sealedKey === null) return yield* files.read(file.id, from, to)
      const chunk = Math.floor(from / sealedChunk)
      const end = Math.min(await files.size(file.id), storedOffset(Math.ceil(to / sealedChunk)))
      const stored = files.read(file.id, storedOffset(chunk), end)
      let at = chunk * sealedChunk
      for await (const piece of opened({ id: file.id, key: keyOf(file) }, stored, chunk)) {
        yield piece.subarray(Math.max(0, from - at), to - at)
        at += piece.length
      }
    },
  }
}
