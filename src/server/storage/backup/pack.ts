import { once } from 'node:events'
import { pipeline, type Readable } from 'node:stream'
import { createGzip, type Gzip } from 'node:zlib'
import { pack as createPack, type Pack } from 'tar-stream'
import { RsmError } from '../../../core/errors.ts'
import { type BackupEnd, type BackupHeader, endName, filesPerSums, headerName, Sums } from './format.ts'

/** Milliseconds without a read until a backup is aborted, because nothing expires while it is made. */
const longestPause = 10 * 60_000

/** One value for all entries, so that equal content gives equal entries. */
const entry = { mode: 0o600, uid: 0, gid: 0, type: 'file' } as const

export interface Part {
  readonly name: string
  readonly bytes: Uint8Array
}

export interface Packing {
  readonly header: BackupHeader
  readonly parts: AsyncIterable<Part>
  /** Damage found by the end. */
  readonly damaged: () => readonly string[]
  /** Called at the end, or with the error that aborted the backup. */
  readonly ended: (result: BackupEnd | Error) => void
}

/** Aborts a stalled backup; returns the function that stops the timer. */
function breakOffAfter(pause: number, gzip: Gzip): () => void {
  let before = -1
  const timer = setInterval(() => {
    if (gzip.bytesWritten === before)
      gzip.destroy(new RsmError('unavailable', 'the backup was aborted: its reader stalled'))
    before = gzip.bytesWritten
  }, pause)
  timer.unref()
  return () => clearInterval(timer)
}

async function write(pack: Pack, { name, bytes }: Part, mtime: Date): Promise<void> {
  const sink = pack.entry({ ...entry, name, size: bytes.length, mtime })
  const done = once(sink, 'close')
  sink.end(bytes)
  await done
}

const jsonOf = (value: object): Buffer => Buffer.from(`${JSON.stringify(value)}\n`)

/** Backup as a gzipped tar. Destroying it aborts the work. */
export function packBackup(
  { header, parts, damaged, ended }: Packing,
  pause: number = longestPause,
): Readable {
  const pack = createPack()
  const gzip = createGzip()
  let end: BackupEnd | null = null
  async function fill(): Promise<void> {
    const mtime = new Date(header.createdAt)
    const sums = new Sums()
    const add = (part: Part): Promise<void> => {
      const written = write(pack, part, mtime)
      // Prevents an unhandled rejection if reading the next part fails first.
      written.catch(() => undefined)
      sums.add(part.name, part.bytes)
      return written
    }
    const addSums = async () => {
      const [name, text] = sums.next()
      await write(pack, { name, bytes: Buffer.from(text) }, mtime)
    }
    // The next part is read while this one is compressed.
    let written = add({ name: headerName, bytes: jsonOf(header) })
    for await (const part of parts) {
      await written
      if (sums.pending === filesPerSums) await addSums()
      written = add(part)
    }
    await written
    if (sums.pending > 0) await addSums()
    end = { ...sums.end(), damaged: damaged() }
    await write(pack, { name: endName, bytes: jsonOf(end) }, mtime)
    pack.finalize()
  }
  fill().catch((error: Error) => pack.destroy(error))
  const stop = breakOffAfter(pause, gzip)
  pipeline(pack, gzip, (error) => {
    stop()
    ended(error ?? end ?? new Error('the backup ended early'))
  })
  return gzip
}
