import { type FileHandle, open } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import type { RecordingWriter } from '../../seams/recordings.ts'
import type { Turn } from '../outputs/sync-turns.ts'
import { writeAll } from '../outputs/write-all.ts'
import { lineOfSum, reopenSums, type SumState, sumsSuffix } from './sums.ts'

const syncInterval = 5000

interface Options {
  turn: Turn
  /** It can't be made to last any more. */
  failed(error: unknown): void
}

/** One recording in its file, and its checks in the file beside it. */
export class RecordingFile implements RecordingWriter {
  #bytes: number
  #checked: SumState
  #isDirty: boolean
  #hasFailed = false
  #syncing: Promise<void> | null = null
  readonly #file: FileHandle
  readonly #sums: FileHandle
  readonly #options: Options
  readonly #timer: NodeJS.Timeout

  constructor(
    file: FileHandle,
    sums: { file: FileHandle; state: SumState },
    bytes: number,
    options: Options,
  ) {
    this.#file = file
    this.#sums = sums.file
    this.#checked = sums.state
    this.#bytes = bytes
    this.#isDirty = sums.state.end < bytes
    this.#options = options
    this.#timer = setInterval(() => void this.#sync(), syncInterval)
    this.#timer.unref()
  }

  static async create(path: string, header: Uint8Array, options: Options): Promise<RecordingFile> {
    const file = await open(path, 'wx', 0o600)
    try {
      await writeAll(file, [header], 0)
      await file.datasync()
      const sums = {
        file: await open(path + sumsSuffix, 'wx', 0o600),
        state: { end: 0, check: crc32(header) },
      }
      return new RecordingFile(file, sums, header.length, options)
    } catch (error) {
      await file.close()
      throw error
    }
  }

  static async reopen(path: string, size: number, options: Options): Promise<RecordingFile> {
    const file = await open(path, 'r+')
    try {
      await file.truncate(size)
      await file.datasync()
      return new RecordingFile(file, await reopenSums(path, size), size, options)
    } catch (error) {
      await file.close()
      throw error
    }
  }

  async append(pieces: readonly Uint8Array[]): Promise<void> {
    try {
      await writeAll(this.#file, pieces, this.#bytes)
    } catch (error) {
      // A full disk writes short before it fails.
      await this.#file.truncate(this.#bytes).catch(() => undefined)
      throw error
    }
    const { end, check } = this.#checked
    this.#checked = { end, check: pieces.reduce((sum, piece) => crc32(piece, sum), check) }
    this.#bytes += pieces.reduce((sum, { length }) => sum + length, 0)
    this.#isDirty = true
  }

  async end(): Promise<void> {
    clearInterval(this.#timer)
    // One that is under way began before the last of it was written.
    await this.#syncing
    await this.#sync()
    await this.#file.close()
    await this.#sums.close()
  }

  async #sync(): Promise<void> {
    if (!this.#isDirty || this.#syncing || this.#hasFailed) return
    this.#isDirty = false
    this.#syncing = this.#syncOnce()
    await this.#syncing
    this.#syncing = null
  }

  async #syncOnce(): Promise<void> {
    const done = await this.#options.turn()
    try {
      // What is checked is what is in the file by now; a crash may leave the check or the text alone.
      const sum = { end: this.#bytes, check: this.#checked.check }
      if (sum.end > this.#checked.end) {
        this.#checked = { end: sum.end, check: 0 }
        await this.#sums.appendFile(lineOfSum(sum))
      }
      await this.#file.datasync()
    } catch (error) {
      this.#hasFailed = true
      this.#options.failed(error)
    } finally {
      done()
    }
  }
}
