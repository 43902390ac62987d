import { StringDecoder } from 'node:string_decoder'

interface Frame {
  readonly sequence: number
  readonly data: string
  /** Bytes of the PTY. */
  readonly bytes: number
}

/** Unacknowledged output of one terminal, numbered from 0. Never splits a character. */
export class Frames {
  readonly #decoder = new StringDecoder('utf8')
  #kept: Frame[] = []
  #count = 0
  /** Sequence of the last frame sent over the current link. */
  #sent = -1
  #carried = 0

  /** Sequence of the last frame; -1 without one. */
  get last(): number {
    return this.#count - 1
  }

  add(bytes: Uint8Array): void {
    this.#push(
      this.#decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)),
      bytes.length,
    )
  }

  /** Ends the output; the remainder of a split character becomes one frame. */
  finish(): void {
    this.#push(this.#decoder.end(), 0)
  }

  take(): Frame | undefined {
    const [first] = this.#kept
    if (first === undefined) return undefined
    const frame = this.#kept[this.#sent + 1 - first.sequence]
    if (frame !== undefined) this.#sent = frame.sequence
    return frame
  }

  /** Drops acknowledged frames and returns their bytes; frames that were not sent cannot be acknowledged. */
  acknowledged(sequence: number): number {
    const upTo = Math.min(sequence, this.#sent)
    const isGone = (frame: Frame) => frame.sequence <= upTo
    const gone = this.#kept.filter(isGone)
    if (gone.length > 0) this.#kept = this.#kept.slice(gone.length)
    return gone.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Sends everything after `after` again; returns like `acknowledged`. */
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
