import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { RsmError } from '../../core/errors.ts'

/** Bytes of a secret file that are sealed together. */
export const sealedChunk = 64 * 1024
const nonceBytes = 12
const tagBytes = 16
const storedChunk = nonceBytes + sealedChunk + tagBytes
const algorithm = 'aes-256-gcm'

/** Where a chunk begins as it is stored. */
export const storedOffset = (chunk: number): number => chunk * storedChunk

/** Bytes of a file of which so many are stored: its last chunk may be shorter. */
export function plainSize(stored: number): number {
  return wholeChunks(stored) * sealedChunk + Math.max(0, (stored % storedChunk) - nonceBytes - tagBytes)
}

/** How many whole chunks so many stored bytes begin with. */
export const wholeChunks = (stored: number): number => Math.floor(stored / storedChunk)

/** Binds a chunk to its place. */
function placeOf(id: string, chunk: number): Buffer {
  return Buffer.from(`files/${id}/${chunk}`)
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

interface Sealed {
  readonly id: string
  readonly key: Buffer
}

/** Bytes from the beginning of `chunk` on as they are stored. A last chunk that is not whole is left out unless `endsHere()`. */
export async function* sealed(
  { id, key }: Sealed,
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

/** What is stored from the beginning of `chunk` on, as it was. Throws `gone` where it is not what was stored. */
export async function* opened(
  { id, key }: Sealed,
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
