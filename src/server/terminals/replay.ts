/** One frame of output, as it goes to recording and client: its text as JSON, in UTF-8. */
export interface Chunk {
  readonly sequence: number
  readonly json: Uint8Array
  /** Characters of all output before it. */
  readonly at: number
  readonly characters: number
}

/** What a frame costs beside its text: programs that write single characters must not make the buffer grow past its bound. */
const overhead = 100

/** An agent pauses at 256 KiB of its PTY; one that sends so much without an acknowledgement keeps to nothing … */
const mostCharacters = 4 * 1024 * 1024
/** … nor does one that sends more frames than there are bytes in that. */
const mostFrames = 512 * 1024

export const sizeOf = ({ json }: Pick<Chunk, 'json'>): number => json.length + overhead

/** A short part of what a socket has read would keep all of that in memory. */
const compact = (json: Uint8Array): Uint8Array =>
  json.length * 2 < json.buffer.byteLength ? Buffer.from(json) : json

/** The last output of a terminal, in order: what a client that returns has missed, and what a new one begins with. */
export class Replay {
  /** The last sequence that came; -1 before any. */
  last = -1
  bytes = 0
  #chunks: Chunk[] = []
  /** Chunks before this index are dropped; the array is cut now and then. */
  #head = 0
  #characters = 0

  push(sequence: number, json: Uint8Array, characters: number): void {
    // Frames that are missing had a character at least.
    if (this.last >= 0 || sequence > 0) this.#characters += sequence - this.last - 1
    const chunk = { sequence, json: compact(json), at: this.#characters, characters }
    this.#chunks.push(chunk)
    this.#characters += characters
    this.last = sequence
    this.bytes += sizeOf(chunk)
  }

  /** Whether more is kept than an agent sends that pauses when it has to. */
  get isExcessive(): boolean {
    const characters = this.#characters - (this.first?.at ?? this.#characters)
    return characters > mostCharacters || this.#chunks.length - this.#head > mostFrames
  }

  /** The oldest output that is kept; undefined where there is none. */
  get first(): Chunk | undefined {
    return this.#chunks[this.#head]
  }

  /** The output that follows this sequence, or the oldest that is kept after it. */
  after(sequence: number): Chunk | undefined {
    if (sequence >= this.last) return undefined
    let low = this.#head
    let high = this.#chunks.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#chunks[middle]?.sequence ?? 0) > sequence) high = middle
      else low = middle + 1
    }
    return this.#chunks[low]
  }

  /** Characters that follow this sequence and are kept no longer: at least so many. */
  omittedAfter(sequence: number): number {
    const next = this.after(sequence)
    if (next === undefined || next.sequence === sequence + 1) return 0
    return sequence < 0 ? next.at : next.sequence - sequence - 1
  }

  /** Drops the oldest output up to this sequence, as far as more than so many bytes are kept. */
  trim(upTo: number, bytes: number): void {
    for (let first = this.first; first && this.bytes > bytes && first.sequence <= upTo; first = this.first) {
      this.bytes -= sizeOf(first)
      this.#head++
    }
    if (this.#head < 1024 || this.#head * 2 < this.#chunks.length) return
    this.#chunks = this.#chunks.slice(this.#head)
    this.#head = 0
  }
}
