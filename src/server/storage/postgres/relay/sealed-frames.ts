import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { Keys } from '../../ports/keys.ts'

/** Bytes of one frame: with what is added it makes just less than the 8,000 that NOTIFY takes. */
export const frameBytes = 5900
const algorithm = 'aes-256-gcm'
const keyBytes = 32
const tagBytes = 16
const counterBytes = 8

/**
 * Whoever may connect to the database may listen to its channels and notify them. So each way from one wire to another has a
 * key of its own, sealed with that of all servers, and counts its frames: none is read, made up, repeated or left out.
 */
const contextOf = (from: number, to: number) => `relay ${from} ${to}`

function nonceOf(counter: number): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeBigUInt64BE(BigInt(counter))
  return nonce
}

/** One way, where it begins. */
export class FrameSealer {
  /** The key, for the other end alone. */
  readonly opening: string
  #counter = 0
  readonly #key = randomBytes(keyBytes)

  constructor(keys: Pick<Keys, 'seal'>, from: number, to: number) {
    this.opening = keys.seal(this.#key.toString('base64'), contextOf(from, to))
  }

  /** The next frame, base64. */
  seal(plain: Uint8Array): string {
    const nonce = nonceOf(this.#counter++)
    const cipher = createCipheriv(algorithm, this.#key, nonce)
    const sealed = [cipher.update(plain), cipher.final(), cipher.getAuthTag()]
    return Buffer.concat([nonce.subarray(0, counterBytes), ...sealed]).toString('base64')
  }
}

/** One way, where it ends. */
export class FrameOpener {
  #counter = 0
  readonly #key: Buffer

  /** Throws for an opening of somebody else. */
  constructor(keys: Pick<Keys, 'open'>, from: number, to: number, opening: string) {
    this.#key = Buffer.from(keys.open(opening, contextOf(from, to)), 'base64')
  }

  /** The bytes of the next frame. Null for one that is not ours, or was there before; throws where one is missing. */
  open(frame: string): Buffer | null {
    const bytes = Buffer.from(frame, 'base64')
    if (bytes.length < counterBytes + tagBytes) return null
    const counter = Number(bytes.readBigUInt64BE(0))
    const plain = this.#decipher(bytes, counter)
    if (plain === null || counter < this.#counter) return null
    if (counter > this.#counter) throw new Error('a frame is missing')
    this.#counter++
    return plain
  }

  #decipher(bytes: Buffer, counter: number): Buffer | null {
    const end = bytes.length - tagBytes
    try {
      const decipher = createDecipheriv(algorithm, this.#key, nonceOf(counter))
      decipher.setAuthTag(bytes.subarray(end))
      return Buffer.concat([decipher.update(bytes.subarray(counterBytes, end)), decipher.final()])
    } catch {
      return null
    }
  }
}
