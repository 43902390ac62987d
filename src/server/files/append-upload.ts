import { createHash, type Hash } from 'node:crypto'
import { BoundedMap } from '../../core/bounded-map.ts'
import { invalid, RsmError } from '../../core/errors.ts'
import { WrongOffset } from '../storage/ports/files.ts'
import type { Store } from '../storage/ports/store.ts'
import type { FileRecord } from '../storage/records/file.ts'
import type { TaskRecord } from '../storage/records/task.ts'
import type { BlobCodec } from './blob-codec.ts'

/** Files with a running digest; for others, the digest is computed from the stored bytes. */
const mostDigests = 256

interface AppendUploadOptions {
  readonly store: Store
  readonly blobs: BlobCodec
  readonly finish: (id: string, content: string | null) => Promise<void>
  readonly remove: (file: FileRecord) => Promise<void>
  /** The record is already gone. */
  readonly discard: (id: string) => Promise<void>
  /** Bytes. */
  readonly maxFileSize: number
}

export interface Arrival {
  readonly bytes: AsyncIterable<Uint8Array>
  /** As announced by the sender; null if unknown. */
  readonly length: number | null
  readonly offset: number
  /** Whether the file ends with these bytes. */
  readonly end: boolean
  /** Limit for this file in bytes, if lower than the server's. */
  readonly maxSize?: number
}

export interface GrownFile {
  readonly file: FileRecord
  readonly offset: number
}

/** `size`: the total, if known. */
export function tooLarge(most: number, size?: number): RsmError {
  const why =
    size === undefined
      ? `The file is larger than ${most} bytes`
      : `The file has ${size} bytes, and the limit is ${most} (--max-file-size of the server)`
  return new RsmError('too_large', why, {
    hint: 'limits: --max-file-size of the server; from hosts also --max-size, or an equal share of 16 times --max-file-size',
  })
}

/** Files of the largest size that all hosts of a fetch may send together if the caller sets no `maxSize`. */
const filesOfFetch = 16

/** Bytes that each host of a fetch may send. */
export function fetchBound(
  { fetch, hostCount }: Pick<TaskRecord, 'fetch' | 'hostCount'>,
  maxFileSize: number,
): number {
  const share = Math.floor((maxFileSize * filesOfFetch) / hostCount)
  return Math.min(fetch?.maxSize ?? share, maxFileSize)
}

/** Error for a wrong offset; `{offset}` says where to continue. */
function conflict({ offset }: WrongOffset): RsmError {
  return new RsmError('conflict', `The file has ${offset} bytes: continue there`, { data: { offset } })
}

export function createAppendUpload({
  store,
  blobs,
  finish,
  remove,
  discard,
  maxFileSize,
}: AppendUploadOptions) {
  const digests = new BoundedMap<string, { hash: Hash; offset: number }>(mostDigests)
  const busy = new Set<string>()

  function digestAt(id: string, offset: number): Hash | null {
    const known = digests.get(id)
    digests.delete(id)
    if (known?.offset === offset) return known.hash
    return offset === 0 ? createHash('sha256') : null
  }

  /** @throws RsmError `too_large`, `invalid` at the first piece beyond the limit */
  async function* bounded(
    { size }: FileRecord,
    { bytes, offset, maxSize = maxFileSize }: Arrival,
    seen: (piece: Uint8Array) => void,
  ): AsyncGenerator<Uint8Array> {
    let end = offset
    for await (const piece of bytes) {
      end += piece.length
      if (end > maxSize) throw tooLarge(maxSize)
      if (size !== null && end > size)
        throw invalid([{ field: 'size', message: `is ${size}, but more bytes were received` }])
      seen(piece)
      yield piece
    }
  }

  async function digestOf(file: FileRecord, size: number): Promise<string> {
    const hash = digestAt(file.id, size)
    if (hash) return hash.digest('hex')
    const whole = createHash('sha256')
    for await (const piece of blobs.read(file, 0, size)) whole.update(piece)
    return whole.digest('hex')
  }

  /** A wrong size can be continued; after a wrong digest, the file is removed. */
  async function complete(file: FileRecord, size: number): Promise<FileRecord> {
    if (file.size !== null && size !== file.size)
      throw invalid([{ field: 'size', message: `is ${file.size}, and ${size} bytes were received` }])
    const sha256 = await digestOf(file, size)
    if (file.sha256 !== null && sha256 !== file.sha256) {
      await remove(file)
      throw invalid([
        {
          field: 'sha256',
          message: `is ${file.sha256}, but the received bytes have ${sha256}: send the file again`,
        },
      ])
    }
    await finish(file.id, file.sealedKey === null ? sha256 : null)
    const whole = { ...file, size, sha256, isComplete: true }
    const isThere = await store.transact(async (tx) => {
      if (!(await tx.get('files', file.id))) return false
      tx.put('files', whole)
      return true
    })
    if (isThere) return whole
    await discard(file.id)
    throw new RsmError('not_found', `File ${file.id} was removed before it was complete: send it again`)
  }

  async function add(file: FileRecord, arrival: Arrival): Promise<GrownFile> {
    const { offset, end, length } = arrival
    const { size } = file
    if (length !== null && offset + length > maxFileSize) throw tooLarge(maxFileSize)
    const endsHere = (at: number) => (size === null ? end : at === size)
    const hash = digestAt(file.id, offset)
    let hashed = offset
    const bytes = bounded(file, arrival, (piece) => {
      hash?.update(piece)
      hashed += piece.length
    })
    const stored = await blobs.append(file, offset, bytes, endsHere)
    // The last bytes of a secret file may not be stored yet.
    if (hash && stored === hashed) digests.set(file.id, { hash, offset: stored })
    if (!end && !endsHere(stored)) return { file, offset: stored }
    return { file: await complete(file, stored), offset: stored }
  }

  return {
    /** Durable bytes. */
    offset: (file: FileRecord): Promise<number> =>
      file.isComplete ? Promise.resolve(file.size ?? 0) : blobs.size(file),

    /**
     * Appends bytes; those received before an interruption stay. Errors: `conflict` with `{offset}` if the
     * offset is not the file's end, or another request is writing; `too_large`; `invalid` for a wrong size or
     * sha256.
     */
    async add(file: FileRecord, arrival: Arrival): Promise<GrownFile> {
      if (file.isComplete) throw conflict(new WrongOffset(file.size ?? 0))
      if (busy.has(file.id)) throw conflict(new WrongOffset(await blobs.size(file)))
      busy.add(file.id)
      try {
        return await add(file, arrival)
      } catch (error) {
        throw error instanceof WrongOffset ? conflict(error) : error
      } finally {
        busy.delete(file.id)
      }
    },
  }
}
