import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { RsmError } from '../../core/errors.ts'
import { type Files, WrongOffset } from '../storage/ports/files.ts'
import type { Keys } from '../storage/ports/keys.ts'
import type { FileRecord } from '../storage/records/file.ts'

/** Bytes of a secret file that are sealed together. */
const sealedChunk = 64 * 1024
const nonceBytes = 12
const tagBytes = 16
const storedChunk = nonceBytes + sealedChunk + tagBytes
const algorithm = 'aes-256-gcm'

/** Reads and appends the plain bytes of files, whether they are stored sealed or not. */
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

  /** The plain bytes of a secret file that are durable in whole chunks, by its stored bytes. */
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

interface FileKey {
  readonly id: string
  readonly key: Buffer
}

/** Bytes from the beginning of `chunk` on as they are stored. A last chunk that is not whole is left out unless `endsHere()`. */
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

/** Plain bytes from the beginning of `chunk` on. Throws `gone` for damaged ones. */
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

/** Pieces of any size as pieces of one size, and a last one. */
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

/** Binds a chunk to its place. */
function placeOf(id: string, chunk: number): Buffer {
  return Buffer.from(`files/${id}/${chunk}`)
}

/** Stored offset of a chunk. */
const storedOffset = (chunk: number): number => chunk * storedChunk

/** Plain bytes by stored bytes: the last chunk may be shorter. */
function plainSize(stored: number): number {
  return wholeChunks(stored) * sealedChunk + Math.max(0, (stored % storedChunk) - nonceBytes - tagBytes)
}

/** Number of whole chunks in the stored bytes. */
const wholeChunks = (stored: number): number => Math.floor(stored / storedChunk)
