/** One frame of output, as it goes to recording and client: its text as JSON, in UTF-8. */
interface Chunk {
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

export const sizeOf = ({ json }: Pick<Chunk, 'json'>): number => json.length + overhead

/** A short part of what a socket has read would keep all of that in memory. */
const compact = (json: Uint8Array): Uint8Array =>
  json.length * 2 < json.buffer.byteLength ? Buffer.from(json) : json

/** Bytes of seen output that are kept for a client that starts again, as a browser does that reloads. */
const keptBytes = 256 * 1024

/** How far the output of a terminal has come: from its host, to its client, and acknowledged to its agent. */
export class Progress {
  /** The last output that its agent was told of over its present link. */
  acknowledged = -1
  /** The last output that a client has acknowledged, or that was written to it. */
  #delivered = -1
  /** `#delivered` of the current client alone, or of the last one: one that started again may be behind. */
  #needed = -1
  /** The newest output that a client may have had from an earlier process: as many as its agent has counted, once that is known. */
  #hostHas: number
  /** After a restart it may not be known what came before. */
  #mayMiss: boolean
  readonly #replay: Replay

  /** `isWhole` is false for a terminal that an earlier process opened. */
  constructor(replay: Replay, isWhole: boolean) {
    this.#replay = replay
    this.#mayMiss = !isWhole
    this.#hostHas = isWhole ? -1 : Number.POSITIVE_INFINITY
  }

  /** No client can have been sent what follows this. */
  get newest(): number {
    return Math.max(this.#replay.last, this.#hostHas)
  }

  get delivered(): number {
    return this.#delivered
  }

  /** Whether the output that comes now is new, was sent again, or has lost what goes before it. */
  arrived(sequence: number): 'next' | 'again' | 'gap' {
    if (sequence <= this.#replay.last) {
      // It was sent again, so its acknowledgement was lost.
      this.acknowledged = -1
      return 'again'
    }
    if (sequence > this.#replay.last + 1 && !this.#mayMiss) return 'gap'
    this.#mayMiss = false
    return 'next'
  }

  /** The present client has shown so much. */
  advance(sequence: number): void {
    this.#needed = sequence
    this.#delivered = Math.max(this.#delivered, sequence)
  }

  /** Its agent has counted so much: nobody has seen more, who attached while that was not known. */
  bound(counted: number): void {
    this.#hostHas = Math.min(this.#hostHas, counted)
    this.#delivered = Math.min(this.#delivered, this.newest)
    this.#needed = Math.min(this.#needed, this.newest)
  }

  /** Up to where nobody needs the agent any more, with so much in the recording; of that, what no client needs is dropped. */
  settled(recorded: number): number {
    const upTo = Math.min(this.#replay.last, recorded, this.#delivered)
    this.#replay.trim(Math.min(upTo, this.#needed), keptBytes)
    return upTo
  }
}
