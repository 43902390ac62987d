import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { pipeline, type Readable } from 'node:stream'
import { createGzip, type Gzip } from 'node:zlib'
import { pack as createPack, type Pack } from 'tar-stream'
import { RsmError } from '../../../../core/errors.ts'
import { type BackupEnd, type BackupHeader, endName, filesPerSums, headerName, sumsName } from './format.ts'
import type { Part } from './parts.ts'

/** Milliseconds for which a backup may stand still, as nobody reads it: while it is made nothing is removed for its age. */
const longestPause = 10 * 60_000

/** Of one backup, so that the same content is the same entry. */
const entry = { mode: 0o600, uid: 0, gid: 0, type: 'file' } as const

export interface Packing {
  readonly header: BackupHeader
  readonly parts: AsyncIterable<Part>
  /** Damage that was found by the end. */
  readonly damaged: () => readonly string[]
  /** It has ended, or (an error) broke off. */
  readonly ended: (result: BackupEnd | Error) => void
}

class Packer {
  readonly #pack: Pack
  readonly #mtime: Date
  #sums = ''
  #inSums = 0
  #segments = 0
  readonly #all = createHash('sha256')
  #files = 0
  #bytes = 0

  constructor(pack: Pack, mtime: Date) {
    this.#pack = pack
    this.#mtime = mtime
  }

  async small(name: string, value: object | string): Promise<void> {
    const bytes = Buffer.from(typeof value === 'string' ? value : `${JSON.stringify(value)}\n`)
    await this.#write({ name, size: bytes.length, bytes: [bytes] })
  }

  async part(part: Part): Promise<void> {
    const hash = createHash('sha256')
    await this.#write(part, (chunk) => hash.update(chunk))
    this.#sums += `${hash.digest('hex')}  ${part.name}\n`
    this.#files++
    this.#bytes += part.size
    if (++this.#inSums === filesPerSums) await this.sums()
  }

  async sums(): Promise<void> {
    if (this.#inSums === 0) return
    const text = this.#sums
    this.#all.update(text)
    this.#sums = ''
    this.#inSums = 0
    await this.small(sumsName(++this.#segments), text)
  }

  end(damaged: readonly string[]): BackupEnd {
    return { files: this.#files, bytes: this.#bytes, sums: this.#all.digest('hex'), damaged }
  }

  async #write(
    { name, size, bytes }: Part,
    seen: (chunk: Uint8Array) => void = () => undefined,
  ): Promise<void> {
    const sink = this.#pack.entry({ ...entry, name, size, mtime: this.#mtime })
    const done = once(sink, 'close')
    // Where the bytes break off nobody waits for it.
    done.catch(() => undefined)
    for await (const chunk of bytes) {
      seen(chunk)
      if (!sink.write(chunk)) await Promise.race([once(sink, 'drain'), done])
    }
    sink.end()
    await done
  }
}

/** Breaks a backup off that stands still; answers how to stop that. */
function breakOffAfter(pause: number, gzip: Gzip): () => void {
  let before = -1
  const timer = setInterval(() => {
    if (gzip.bytesWritten === before)
      gzip.destroy(new RsmError('unavailable', 'the backup broke off: its reader stopped for too long'))
    before = gzip.bytesWritten
  }, pause)
  timer.unref()
  return () => clearInterval(timer)
}

/** A backup as it goes out: a tar that gzip has compressed. Destroying it ends the work. */
export function packBackup(
  { header, parts, damaged, ended }: Packing,
  pause: number = longestPause,
): Readable {
  const pack = createPack()
  const gzip = createGzip()
  const packer = new Packer(pack, new Date(header.createdAt))
  let end: BackupEnd | null = null
  async function fill(): Promise<void> {
    await packer.small(headerName, header)
    for await (const part of parts) await packer.part(part)
    await packer.sums()
    end = packer.end(damaged())
    await packer.small(endName, end)
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
