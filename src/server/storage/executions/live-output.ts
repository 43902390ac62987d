import type { ScriptOutput } from '../../../core/protocol/messages.ts'
import type { Stream } from '../../../core/tasks/task.ts'
import type { OutputSoFar } from '../ports/executions.ts'
import type { Progress } from '../ports/outputs.ts'

/** Bytes beyond the cap: an rsm agent enforces the cap itself, but adds a marker and the last 64 KiB. */
const capSlack = 256 * 1024
/** An rsm agent counts bytes before decoding; each invalid UTF-8 byte arrives as the three of U+FFFD. */
const replacementBytes = 3
/**
 * Bytes that a frame counts in addition to its data. It takes more on disk, but a script that writes a word a
 * hundred times a second should keep all of it for most of a day.
 */
const frameBytes = 32

export const noOutput: OutputSoFar = {
  storedSequence: -1,
  stdoutBytes: 0,
  stderrBytes: 0,
  truncated: false,
  incomplete: false,
}

/** Piece that is accepted but not durable yet. */
interface Piece {
  readonly sequence: number
  /** Last sequence accepted before it. */
  readonly before: number
  readonly stream: Stream
  readonly bytes: number
}

export interface OutputDisk {
  /** Limit of the task for each host, in bytes. */
  readonly maxBytes: number
  write(output: ScriptOutput, json: Uint8Array | undefined): Promise<void>
  isTruncated(): boolean
  /** Records the truncation, so that a later server process does not request the dropped sequences again. */
  noteTruncated(): Promise<void>
}

/** Output of one execution: stored, and in flight to the disk. */
export class LiveOutput implements OutputSoFar {
  storedSequence: number
  stdoutBytes: number
  stderrBytes: number
  truncated: boolean
  incomplete = false
  #frames: number
  #lastSequence: number
  /** Pieces between the stored sequence and the last accepted one, in order. */
  readonly #pending = new Set<Piece>()
  #appended: Promise<unknown> = Promise.resolve()

  constructor(stored: Progress | undefined, truncated: boolean) {
    this.#lastSequence = stored?.lastSequence ?? -1
    this.storedSequence = this.#lastSequence
    this.stdoutBytes = stored?.stdoutBytes ?? 0
    this.stderrBytes = stored?.stderrBytes ?? 0
    this.#frames = stored?.frames ?? 0
    this.truncated = truncated
  }

  /** See Executions.append. */
  append(
    output: ScriptOutput,
    json: Uint8Array | undefined,
    isOurs: boolean,
    disk: OutputDisk,
  ): Promise<number | null> {
    const expected = this.#lastSequence + 1
    const isPastGap = isOurs && output.sequence > expected && !this.truncated
    if (output.sequence < expected || isPastGap) return Promise.resolve(this.storedSequence)
    const piece = this.#take(output)
    const bound = disk.maxBytes * (isOurs ? replacementBytes : 1) + capSlack
    if (this.stdoutBytes + this.stderrBytes + this.#frames * frameBytes > bound) this.truncated = true
    const writing = this.truncated ? this.#letGo(piece, disk) : disk.write(output, json)
    const appended = writing.then(
      () => this.#stored(piece),
      (error: unknown) => {
        // A base-protocol agent never resends: the piece is lost.
        if (!isOurs) this.incomplete = true
        if (!this.#refused(piece)) return null
        this.truncated = disk.isTruncated()
        throw error
      },
    )
    this.#appended = appended.catch(() => undefined)
    return appended
  }

  #take({ sequence, stream, data }: ScriptOutput): Piece {
    const piece = { sequence, before: this.#lastSequence, stream, bytes: Buffer.byteLength(data) }
    this.#pending.add(piece)
    this.#lastSequence = sequence
    this.#count(piece, 1)
    return piece
  }

  #count({ stream, bytes }: Piece, sign: 1 | -1): void {
    this[stream === 'stdout' ? 'stdoutBytes' : 'stderrBytes'] += sign * bytes
    this.#frames += sign
  }

  /** Drops a piece past the limit; only the truncation is written, once. */
  async #letGo(piece: Piece, disk: OutputDisk): Promise<void> {
    await this.#appended
    if (this.#pending.has(piece) && !disk.isTruncated()) await disk.noteTruncated()
  }

  #stored(piece: Piece): number | null {
    if (!this.#pending.delete(piece)) return null
    this.storedSequence = Math.max(this.storedSequence, piece.sequence)
    return this.storedSequence
  }

  /**
   * Drops a piece that could not be stored, and all accepted after it (Outputs.append); they may be sent
   * again. Earlier pieces may still be written and are not accepted again. False if it was dropped already.
   */
  #refused(piece: Piece): boolean {
    if (!this.#pending.has(piece)) return false
    let isRefused = false
    for (const one of this.#pending) {
      isRefused ||= one === piece
      if (!isRefused) continue
      this.#pending.delete(one)
      this.#count(one, -1)
    }
    this.#lastSequence = piece.before
    return true
  }
}
