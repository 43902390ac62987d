import { StringDecoder } from 'node:string_decoder'

interface Frame {
  readonly sequence: number
  readonly data: string
  /** Of the PTY; frames beyond 64 KiB of them never come. */
  readonly bytes: number
}

/** The output of one terminal, numbered from 0, as far as the server has not acknowledged it. Splits no character. */
export class Frames {
  readonly #decoder = new StringDecoder('utf8')
  #kept: Frame[] = []
  #count = 0
  /** The last one that went out over the present link. */
  #sent = -1
  /** Bytes of a character whose rest has not come yet. */
  #carried = 0

  /** Of the last one, -1 for none. */
  get last(): number {
    return this.#count - 1
  }

  add(bytes: Uint8Array): void {
    this.#push(
      this.#decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)),
      bytes.length,
    )
  }

  /** There is no more; what remains of a split character counts as one. */
  finish(): void {
    this.#push(this.#decoder.end(), 0)
  }

  /** The next to be sent. */
  take(): Frame | undefined {
    const [first] = this.#kept
    if (first === undefined) return undefined
    const frame = this.#kept[this.#sent + 1 - first.sequence]
    if (frame !== undefined) this.#sent = frame.sequence
    return frame
  }

  /** The bytes that are kept no longer; what was not sent can't have been acknowledged. */
  acknowledged(sequence: number): number {
    const upTo = Math.min(sequence, this.#sent)
    const isGone = (frame: Frame) => frame.sequence <= upTo
    const gone = this.#kept.filter(isGone)
    if (gone.length > 0) this.#kept = this.#kept.slice(gone.length)
    return gone.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** All that follows `after` is sent again; answers as `acknowledged`. */
  resume(after: number): number {
    this.#sent = Math.min(after, this.last)
    const freed = this.acknowledged(after)
    const [first] = this.#kept
    this.#sent = Math.max(this.#sent, (first?.sequence ?? this.#count) - 1)
    return freed
  }

  #push(data: string, bytes: number): void {
    if (data === '') {
      this.#carried += bytes
      return
    }
    this.#kept.push({ sequence: this.#count, data, bytes: bytes + this.#carried })
    this.#count += 1
    this.#carried = 0
  }
}
