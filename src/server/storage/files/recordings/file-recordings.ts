import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { crc32 } from 'node:zlib'
import { RsmError } from '../../../../core/errors.ts'
import { Mutex } from '../../../../core/mutex.ts'
import { AppendLog, type LogFile } from '../../../../disk/append-log.ts'
import { type Disk, syncDirectory, writeWhole } from '../../../../disk/durable.ts'
import type { Recordings, RecordingWriter } from '../../ports/terminals.ts'
import { createOrphans } from '../orphans.ts'
import { lineOfSum, reopenSums, type SumState, sumsSuffix, verifyRecording } from './sums.ts'

export const recordingSuffix = '.cast'

/** Milliseconds between two syncs of a recording. */
const syncInterval = 5000

/** One asciicast file per recording, in a directory of its own. */
export async function openFileRecordings(directory: string, disk?: Disk): Promise<Recordings> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const syncs = new Mutex()
  const orphans = createOrphans(directory)
  const pathOf = (id: string) => join(directory, id + recordingSuffix)
  return {
    async create(id, header, failed) {
      const file = await RecordingFile.create(pathOf(id), header, { syncs, failed, disk })
      await syncDirectory(directory).catch(async (error: unknown) => {
        await file.end().catch(() => undefined)
        throw error
      })
      return file
    },
    content: (id) => createReadStream(pathOf(id)),
    reopen: (id, size, failed) => RecordingFile.reopen(pathOf(id), size, { syncs, failed, disk }),
    async read(id, bytes) {
      const path = pathOf(id)
      const found = await stat(path).catch(() => null)
      if (!found)
        throw new RsmError('gone', `The recording of terminal session ${id} is no longer kept`, {
          hint: 'the server keeps recordings for --recording-retention days',
        })
      const size = Math.min(found.size, bytes ?? found.size)
      if (size === 0) return Readable.from([])
      await verifyRecording(path, size, bytes ?? size)
      return createReadStream(path, { end: size - 1 })
    },
    async forget(id) {
      await rm(pathOf(id), { force: true })
      await rm(pathOf(id) + sumsSuffix, { force: true })
    },
    async list() {
      const found: { id: string; changedAt: number }[] = []
      for (const name of await readdir(directory)) {
        if (!name.endsWith(recordingSuffix)) continue
        const { mtimeMs } = await stat(join(directory, name))
        found.push({ id: name.slice(0, -recordingSuffix.length), changedAt: mtimeMs })
      }
      return found
    },
    async moveAside(ids, now) {
      const there = new Set(await readdir(directory))
      const names = ids.flatMap((id) => [id + recordingSuffix, id + recordingSuffix + sumsSuffix])
      return orphans.moveAside(
        names.filter((name) => there.has(name)),
        now,
      )
    },
    orphans,
  }
}

interface RecordingFileOptions {
  /** Shared by all recordings, for one fsync at a time. */
  syncs: Mutex
  /** Called if the recording can no longer be made durable. */
  failed(error: unknown): void
  readonly disk?: Disk | undefined
}

export class RecordingFile implements RecordingWriter {
  #checked: SumState
  #hasFailed = false
  readonly #log: AppendLog<readonly Uint8Array[]>
  readonly #sums: FileHandle
  readonly #mutex = new Mutex()
  readonly #options: RecordingFileOptions
  readonly #timer: NodeJS.Timeout

  constructor(file: LogFile, sums: { file: FileHandle; state: SumState }, options: RecordingFileOptions) {
    this.#log = new AppendLog<readonly Uint8Array[]>(file, {
      name: 'the recording',
      sync: 'never',
      turn: () => options.syncs.acquire(),
      disk: options.disk,
      written: (batch) => {
        const { end, check } = this.#checked
        const pieces = batch.flatMap(({ item }) => item)
        this.#checked = { end, check: pieces.reduce((sum, piece) => crc32(piece, sum), check) }
      },
    })
    this.#sums = sums.file
    this.#checked = sums.state
    this.#options = options
    this.#timer = setInterval(() => void this.#sync(), syncInterval)
    this.#timer.unref()
  }

  static async create(
    path: string,
    header: Uint8Array,
    options: RecordingFileOptions,
  ): Promise<RecordingFile> {
    const handle = await open(path, 'wx', 0o600)
    try {
      await writeWhole(handle.fd, header, 0)
      await handle.datasync()
      const sums = {
        file: await open(path + sumsSuffix, 'wx', 0o600),
        state: { end: 0, check: crc32(header) },
      }
      return new RecordingFile({ path, handle, size: header.length }, sums, options)
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  static async reopen(path: string, size: number, options: RecordingFileOptions): Promise<RecordingFile> {
    const handle = await open(path, 'r+')
    try {
      await handle.truncate(size)
      await handle.datasync()
      return new RecordingFile({ path, handle, size }, await reopenSums(path, size), options)
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  async append(pieces: readonly Uint8Array[]): Promise<void> {
    await this.#log.append(pieces, pieces)
  }

  async end(): Promise<void> {
    clearInterval(this.#timer)
    await this.#log.idle()
    await this.#sync()
    await this.#log.close()
    await this.#sums.close()
  }

  #sync(): Promise<void> {
    return this.#mutex.run(() => this.#syncOnce())
  }

  /** Checksums whatever is in the file by now; a crash may leave only the checksum or only the text. */
  async #syncOnce(): Promise<void> {
    const sum = { end: this.#log.size, check: this.#checked.check }
    if (this.#hasFailed || sum.end === this.#checked.end) return
    this.#checked = { end: sum.end, check: 0 }
    try {
      await this.#sums.appendFile(lineOfSum(sum))
      await this.#log.sync()
    } catch (error) {
      this.#hasFailed = true
      this.#options.failed(error)
    }
  }
}
