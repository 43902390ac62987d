import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { crc32 } from 'node:zlib'
import { RsmError } from '../../../core/errors.ts'
import { Mutex } from '../../../core/mutex.ts'
import { AppendLog, type LogFile } from '../../../disk/append-log.ts'
import { type Disk, nullWhereMissing, syncDirectory, writeWhole } from '../../../disk/durable.ts'
import type { Recordings, RecordingWriter } from '../ports/terminals.ts'
import { createOrphans } from './orphans.ts'

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

/** Suffix of the checksum file beside a recording, because asciicast has no place for checksums. */
export const sumsSuffix = '.sums'
const readBytes = 256 * 1024

/** CRC-32 of the bytes from the previous `end` to this one. */
interface Sum {
  readonly end: number
  readonly check: number
}

/** Checked length of a recording, and the checksum of the bytes in its file beyond that. */
interface SumState {
  readonly end: number
  readonly check: number
}

const lineOfSum = ({ end, check }: Sum): string => `${end} ${check.toString(16).padStart(8, '0')}\n`

/** Checksums of a recording; empty for one of 0.1.0. A last line torn by a crash is ignored. */
async function readSums(path: string): Promise<Sum[]> {
  const text = (await readFile(path + sumsSuffix, 'latin1').catch(nullWhereMissing)) ?? ''
  const sums: Sum[] = []
  const lines = text.split('\n')
  lines.pop()
  for (const [at, line] of lines.entries()) {
    const found = /^(\d{1,15}) ([0-9a-f]{8})$/.exec(line)
    const end = Number(found?.[1])
    if (!found || end <= (sums.at(-1)?.end ?? 0))
      throw damaged(`${path}${sumsSuffix}, line ${at + 1} of its checksums`)
    sums.push({ end, check: Number.parseInt(found[2] ?? '', 16) })
  }
  return sums
}

function damaged(place: string): RsmError {
  return new RsmError('gone', `the recording is damaged: ${place}`, {
    hint: 'restore it from a backup',
  })
}

/** CRC-32 of a part of a file; NaN if the file is shorter. */
async function checkOf(file: FileHandle, from: number, to: number): Promise<number> {
  const buffer = Buffer.allocUnsafe(Math.min(readBytes, Math.max(1, to - from)))
  let check = 0
  for (let at = from; at < to; ) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, to - at), at)
    if (bytesRead === 0) return Number.NaN
    check = crc32(buffer.subarray(0, bytesRead), check)
    at += bytesRead
  }
  return check
}

/** Verifies `size` of `expected` bytes. Errors: `gone` with file and position if they are damaged. */
export async function verifyRecording(path: string, size: number, expected: number): Promise<void> {
  if (size < expected) throw damaged(`${path} ends at byte ${size}, not ${expected}`)
  const sums = await readSums(path)
  const file = await open(path, 'r')
  try {
    let from = 0
    for (const { end, check } of sums) {
      // The checksums of a recording in progress may be ahead of the requested bytes.
      if (end > size) break
      if ((await checkOf(file, from, end)) !== check) throw damaged(`${path}, bytes ${from} to ${end}`)
      from = end
    }
  } finally {
    await file.close()
  }
}

/** Opens the checksums of a recording that was truncated to `size` bytes, to append to them. */
async function reopenSums(path: string, size: number): Promise<{ file: FileHandle; state: SumState }> {
  const sums = (await readSums(path)).filter(({ end }) => end <= size)
  const end = sums.at(-1)?.end ?? 0
  const file = await open(path + sumsSuffix, 'a', 0o600)
  try {
    const kept = sums.reduce((bytes, sum) => bytes + lineOfSum(sum).length, 0)
    await file.truncate(kept)
    const cast = await open(path, 'r')
    try {
      return { file, state: { end, check: await checkOf(cast, end, size) } }
    } finally {
      await cast.close()
    }
  } catch (error) {
    await file.close()
    throw error
  }
}
