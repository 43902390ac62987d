import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { RsmError } from '../../core/errors.ts'
import { type Files, WrongOffset } from '../storage/ports/files.ts'
import type { Keys } from '../storage/ports/keys.ts'
import type { FileRecord } from '../storage/records/file.ts'

/** Plain bytes of a secret file encrypted as one chunk. */
const sealedChunk = 64 * 1024
const nonceBytes = 12
const tagBytes = 16
const storedChunk = nonceBytes + sealedChunk + tagBytes
const algorithm = 'aes-256-gcm'

/** Reads and appends plain bytes of files, encrypted at rest or not. */
export interface BlobCodec {
  /** Creates the sealed key of a new secret file, as stored in its record. */
  newKey(id: string): string
  /** Durable bytes of an incomplete file; for a secret one whole chunks, because the rest may be torn. */
  size(file: FileRecord): Promise<number>
  /** As Files.append. `endsHere`: whether a file of this size ends with these bytes. */
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

  /** Plain bytes in the whole chunks of a secret file, by its stored size. */
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
        // A kill or a full disk leaves a partial chunk, after which nothing could be decrypted.
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

interface FileKey {
  readonly id: string
  readonly key: Buffer
}

/** Encrypts bytes from the start of `chunk` on. Omits a partial last chunk unless `endsHere()`. */
async function* sealed(
  { id, key }: FileKey,
  bytes: AsyncIterable<Uint8Array>,
  chunk: number,
  endsHere: (bytes: number) => boolean,
): AsyncGenerator<Buffer> {
  let number = chunk
  for await (const piece of inPieces(bytes, sealedChunk)) {
    if (piece.length < sealedChunk && !endsHere(number * sealedChunk + piece.length)) return
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv(algorithm, key, nonce).setAAD(placeOf(id, number))
    const body = Buffer.concat([cipher.update(piece), cipher.final()])
    yield Buffer.concat([nonce, body, cipher.getAuthTag()])
    number++
  }
}

/** Decrypts bytes from the start of `chunk` on. Throws `gone` if they are damaged. */
async function* opened(
  { id, key }: FileKey,
  stored: AsyncIterable<Uint8Array>,
  chunk: number,
): AsyncGenerator<Buffer> {
  let number = chunk
  for await (const piece of inPieces(stored, storedChunk)) {
    const decipher = createDecipheriv(algorithm, key, piece.subarray(0, nonceBytes))
    decipher.setAAD(placeOf(id, number)).setAuthTag(piece.subarray(-tagBytes))
    try {
      const body = decipher.update(piece.subarray(nonceBytes, -tagBytes))
      yield Buffer.concat([body, decipher.final()])
    } catch (cause) {
      throw new RsmError('gone', `file ${id} is damaged: its bytes are not what was stored`, { cause })
    }
    number++
  }
}

/** Regroups pieces into pieces of `size`, and a last one. */
async function* inPieces(bytes: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Buffer> {
  const whole = Buffer.allocUnsafeSlow(size)
  let length = 0
  for await (const piece of bytes)
    for (let at = 0; at < piece.length; ) {
      const taken = piece.subarray(at, at + size - length)
      whole.set(taken, length)
      length += taken.length
      at += taken.length
      if (length < size) continue
      yield whole
      length = 0
    }
  if (length > 0) yield whole.subarray(0, length)
}

/** Authenticated data that binds a chunk to its position. */
function placeOf(id: string, chunk: number): Buffer {
  return Buffer.from(`files/${id}/${chunk}`)
}

const storedOffset = (chunk: number): number => chunk * storedChunk

/** Plain size by stored size: the last chunk may be shorter. */
function plainSize(stored: number): number {
  return wholeChunks(stored) * sealedChunk + Math.max(0, (stored % storedChunk) - nonceBytes - tagBytes)
}

const wholeChunks = (stored: number): number => Math.floor(stored / storedChunk)
