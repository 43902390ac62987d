import { type FileHandle, open } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import type { Turn } from '../../embedded/outputs/sync-turns.ts'
import { writeAll } from '../../embedded/outputs/write-all.ts'
import { lineOfSum, type SumState, sumsSuffix } from './sums.ts'

/** No recording grows beyond this; the session goes on without it. */
export const largestRecording = 256 * 1024 * 1024
const syncInterval = 5000
/** The marker of a recording that came to its bound, as JSON: no program can print one. What follows it is no output of the session. */
export const fullMark: string = JSON.stringify('full')
const fullNotice = '\r\n[rsm: this recording is as long as one may be; the session went on]\r\n'

export interface RecordingEvents {
  /** More of it is in its file. */
  written(): void
  /** It can't be written any more; called once. */
  failed(error: unknown): void
}

export interface RecordingOptions {
  turn: Turn
  events: RecordingEvents
  /** Bytes; `largestRecording` by default. */
  most?: number
}

/** Where a recording goes on: bytes that are in its file, seconds of its last event, and the last output's sequence. */
export interface RecordingState {
  readonly bytes: number
  readonly seconds: number
  readonly sequence: number
  readonly isFull: boolean
}

interface Pending {
  line: readonly Uint8Array[]
  bytes: number
  sequence: number
}

const lineEnd = Buffer.from(']\n')

/** The asciicast of one session (asciicast v2), appended as it happens: at any moment its file is whole lines, and one torn at most. */
export class Recording {
  /** The last output that is in the file; what came after the bound counts as if it were. */
  written: number
  /** Whole lines in the file, in bytes. */
  bytes: number
  #seconds: number
  #last: number
  #planned: number
  #isFull: boolean
  #isDirty = false
  #failure: { error: unknown } | null = null
  #waiting: Pending[] = []
  #writing: Promise<void> | null = null
  #syncing: Promise<void> | null = null
  readonly #file: FileHandle
  readonly #sums: FileHandle
  #checked: SumState
  readonly #options: RecordingOptions
  readonly #timer: NodeJS.Timeout

  constructor(
    file: FileHandle,
    sums: { file: FileHandle; state: SumState },
    state: RecordingState,
    options: RecordingOptions,
  ) {
    this.#file = file
    this.#sums = sums.file
    this.#checked = sums.state
    this.#isDirty = sums.state.end < state.bytes
    this.#options = options
    this.bytes = state.bytes
    this.written = state.sequence
    this.#last = state.sequence
    this.#planned = state.bytes
    this.#seconds = state.seconds
    this.#isFull = state.isFull
    this.#timer = setInterval(() => void this.#sync(), syncInterval)
    this.#timer.unref()
  }

  /** A new one; its header is on disk when this resolves. */
  static async create(path: string, header: object, options: RecordingOptions): Promise<Recording> {
    const file = await open(path, 'wx', 0o600)
    const line = Buffer.from(`${JSON.stringify(header)}\n`)
    try {
      await writeAll(file, [line], 0)
      await file.datasync()
      const sums = { file: await open(path + sumsSuffix, 'wx', 0o600), state: { end: 0, check: crc32(line) } }
      return new Recording(
        file,
        sums,
        { bytes: line.length, seconds: 0, sequence: -1, isFull: false },
        options,
      )
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** One frame of output; `json` is its text as JSON, in UTF-8; `seconds` counts from the session's start. */
  output(seconds: number, sequence: number, json: Uint8Array): void {
    // The place of an output among the others is its sequence; only where some are missing it has to be said.
    if (sequence !== this.#last + 1)
      this.#event(seconds, 'm', Buffer.from(JSON.stringify(`sequence ${sequence}`)), this.#last)
    this.#last = sequence
    this.#event(seconds, 'o', json, sequence)
  }

  resize(seconds: number, cols: number, rows: number): void {
    this.#event(seconds, 'r', Buffer.from(JSON.stringify(`${cols}x${rows}`)), this.#last)
  }

  /** Writes all that is waiting, and makes it last. */
  async end(): Promise<void> {
    clearInterval(this.#timer)
    await this.#writing
    // One that is under way began before the last of it was written.
    await this.#syncing
    await this.#sync()
    await this.#file.close()
    await this.#sums.close()
  }

  #event(seconds: number, code: 'o' | 'r' | 'm', json: Uint8Array, sequence: number): void {
    if (this.#failure) return
    // Time never goes back in a recording, whatever the clock did over a restart.
    this.#seconds = Math.max(this.#seconds, seconds)
    if (this.#isFull) {
      this.written = sequence
      return
    }
    const pending = this.#lineOf(code, json, sequence)
    this.#planned += pending.bytes
    this.#isFull = this.#planned > (this.#options.most ?? largestRecording)
    if (this.#isFull)
      this.#waiting.push(
        this.#lineOf('m', Buffer.from(fullMark), sequence),
        this.#lineOf('o', Buffer.from(JSON.stringify(fullNotice)), sequence),
      )
    else this.#waiting.push(pending)
    this.#writing ??= this.#writeAll()
  }

  #lineOf(code: 'o' | 'r' | 'm', json: Uint8Array, sequence: number): Pending {
    const begin = Buffer.from(`[${this.#seconds.toFixed(6)}, "${code}", `)
    return {
      line: [begin, json, lineEnd],
      bytes: begin.length + json.length + lineEnd.length,
      sequence,
    }
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#failure) {
      const batch = this.#waiting
      this.#waiting = []
      try {
        const pieces = batch.flatMap(({ line }) => line)
        await writeAll(this.#file, pieces, this.bytes)
        const { end, check } = this.#checked
        this.#checked = { end, check: pieces.reduce((sum, piece) => crc32(piece, sum), check) }
      } catch (error) {
        // A full disk writes short before it fails.
        await this.#file.truncate(this.bytes).catch(() => undefined)
        this.#fail(error)
        break
      }
      this.bytes += batch.reduce((sum, { bytes }) => sum + bytes, 0)
      this.#isDirty = true
      this.written = Math.max(this.written, batch.at(-1)?.sequence ?? -1)
      this.#options.events.written()
    }
    this.#writing = null
  }

  async #sync(): Promise<void> {
    if (!this.#isDirty || this.#syncing || this.#failure) return
    this.#isDirty = false
    this.#syncing = this.#syncOnce()
    await this.#syncing
    this.#syncing = null
  }

  async #syncOnce(): Promise<void> {
    const done = await this.#options.turn()
    try {
      // What is checked is what is in the file by now; a crash may leave the check or the text alone.
      const sum = { end: this.bytes, check: this.#checked.check }
      if (sum.end > this.#checked.end) {
        this.#checked = { end: sum.end, check: 0 }
        await this.#sums.appendFile(lineOfSum(sum))
      }
      await this.#file.datasync()
    } catch (error) {
      this.#fail(error)
    } finally {
      done()
    }
  }

  #fail(error: unknown): void {
    if (this.#failure) return
    this.#failure = { error }
    this.#waiting = []
    this.#options.events.failed(error)
  }
}
