/** One frame of output; `json` is its JSON text in UTF-8. */
interface Chunk {
  readonly sequence: number
  readonly json: Uint8Array
  /** Characters of all output before it. */
  readonly at: number
  readonly characters: number
}

/** Cost of a frame beside its text, so that programs that write single characters cannot exceed the limit. */
const overhead = 100

/** Limit of kept characters. An agent pauses at 256 KiB of its PTY, so one that gets here ignores acknowledgements. */
const mostCharacters = 4 * 1024 * 1024
/** Limit of kept frames, for the same reason. */
const mostFrames = 512 * 1024

/** The latest output of a terminal, in order: replayed to clients that reconnect or attach. */
export class Replay {
  /** Sequence of the last output; -1 before any. */
  last = -1
  bytes = 0
  #chunks: Chunk[] = []
  /** Index of the first kept chunk; earlier ones are cut off in batches. */
  #head = 0
  #characters = 0

  push(sequence: number, json: Uint8Array, characters: number): void {
    // Count at least one character for each missing frame.
    if (this.last >= 0 || sequence > 0) this.#characters += sequence - this.last - 1
    const chunk = { sequence, json: compact(json), at: this.#characters, characters }
    this.#chunks.push(chunk)
    this.#characters += characters
    this.last = sequence
    this.bytes += sizeOf(chunk)
  }

  /** Whether more is kept than a well-behaved agent sends before it pauses. */
  get isExcessive(): boolean {
    const characters = this.#characters - (this.first?.at ?? this.#characters)
    return characters > mostCharacters || this.#chunks.length - this.#head > mostFrames
  }

  /** Oldest kept output; undefined if none. */
  get first(): Chunk | undefined {
    return this.#chunks[this.#head]
  }

  /** The output after this sequence, or the oldest kept one after it. */
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

  /** Lower bound of the characters after this sequence that are no longer kept. */
  omittedAfter(sequence: number): number {
    const next = this.after(sequence)
    if (next === undefined || next.sequence === sequence + 1) return 0
    return sequence < 0 ? next.at : next.sequence - sequence - 1
  }

  /** Drops the oldest output up to this sequence while more than `bytes` are kept. */
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

/** Copies a small part of a socket's read buffer, which would otherwise stay in memory. */
const compact = (json: Uint8Array): Uint8Array =>
  json.length * 2 < json.buffer.byteLength ? Buffer.from(json) : json

/** Bytes of delivered output kept for a client that starts over, as a reloaded browser does. */
const keptBytes = 256 * 1024

/** Progress of output: received from the host, delivered to the client, acknowledged to the agent. */
export class Progress {
  /** Last output acknowledged to the agent over its current link. */
  acknowledged = -1
  /** Last output that any client acknowledged or that was written to it. */
  #delivered = -1
  /** The same for the current or last client only, which may be behind if it started over. */
  #needed = -1
  /** Newest output a client may have from an earlier process; unbounded until the agent reports its count. */
  #hostHas: number
  /** After a restart, earlier output may be unknown. */
  #mayMiss: boolean
  readonly #replay: Replay

  /** `isWhole` is false for a terminal that an earlier process opened. */
  constructor(replay: Replay, isWhole: boolean) {
    this.#replay = replay
    this.#mayMiss = !isWhole
    this.#hostHas = isWhole ? -1 : Number.POSITIVE_INFINITY
  }

  /** Newest output that a client may have. */
  get newest(): number {
    return Math.max(this.#replay.last, this.#hostHas)
  }

  get delivered(): number {
    return this.#delivered
  }

  /** Whether incoming output is new, repeated, or follows a gap. */
  arrived(sequence: number): 'next' | 'again' | 'gap' {
    if (sequence <= this.#replay.last) {
      // The agent resent it, so its acknowledgement was lost.
      this.acknowledged = -1
      return 'again'
    }
    if (sequence > this.#replay.last + 1 && !this.#mayMiss) return 'gap'
    this.#mayMiss = false
    return 'next'
  }

  advance(sequence: number): void {
    this.#needed = sequence
    this.#delivered = Math.max(this.#delivered, sequence)
  }

  /** Clamps client positions to the agent's output count. */
  bound(counted: number): void {
    this.#hostHas = Math.min(this.#hostHas, counted)
    this.#delivered = Math.min(this.#delivered, this.newest)
    this.#needed = Math.min(this.#needed, this.newest)
  }

  /** Newest output to acknowledge to the agent; drops output that clients no longer need. */
  settled(recorded: number): number {
    const upTo = Math.min(this.#replay.last, recorded, this.#delivered)
    this.#replay.trim(Math.min(upTo, this.#needed), keptBytes)
    return upTo
  }
}
