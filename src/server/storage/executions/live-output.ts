import type { ScriptOutput } from '../../../core/protocol/messages.ts'
import type { Stream } from '../../../core/tasks/task.ts'
import type { OutputSoFar } from '../ports/executions.ts'
import type { Progress } from '../ports/outputs.ts'

/** An agent of ours keeps the cap itself, with a marker and the last 64 KiB past it; this is what it may exceed … */
const capSlack = 256 * 1024
/** … and it counts what the script wrote, of which a byte that is no UTF-8 comes as the three of U+FFFD. */
const replacementBytes = 3
/**
 * What a frame counts beside its bytes: it takes more on disk, but a script that says a word a hundred times a second is
 * to keep all of it for most of a day.
 */
const frameBytes = 32

export const noOutput: OutputSoFar = {
  storedSequence: -1,
  stdoutBytes: 0,
  stderrBytes: 0,
  truncated: false,
  incomplete: false,
}

/** A piece that is taken in and not yet durable. */
interface Piece {
  readonly sequence: number
  /** The last one taken in before it. */
  readonly before: number
  readonly stream: Stream
  readonly bytes: number
}

/** How the pieces of one execution get to the disk. */
export interface OutputDisk {
  /** Bytes that the task takes of each host. */
  readonly maxBytes: number
  write(output: ScriptOutput, json: Uint8Array | undefined): Promise<void>
  /** Whether it is on disk that there was more than is taken. */
  isTruncated(): boolean
  /** By that a later life of the server knows that the numbers which it lacks were let go, and does not ask for them again. */
  noteTruncated(): Promise<void>
}

/** The output of one execution: what is stored, and what is on its way to the disk. */
export class LiveOutput implements OutputSoFar {
  storedSequence: number
  stdoutBytes: number
  stderrBytes: number
  truncated: boolean
  incomplete = false
  #frames: number
  #lastSequence: number
  /** What lies between the last sequence taken in and the one stored, in order. */
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

  /** As Executions.append. */
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
        // A base-protocol agent sends nothing twice: what could not be stored is gone.
        if (!isOurs) this.incomplete = true
        if (!this.#refused(piece)) return null
        this.truncated = disk.isTruncated()
        throw error
      },
    )
    this.#appended = appended.catch(() => undefined)
    return appended
  }

  /** It counts from here on, and is not taken again. */
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

  /** A piece past the bound: only that there was one goes to disk, once. */
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
   * The piece could not be stored, and so none that was taken in after it (Outputs.append): they may come again. What
   * was taken in before it may still be written, and is not taken again. False when that is known already.
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
