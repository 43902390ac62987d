import { RsmError } from '../../core/errors.ts'
import { Mutex } from '../../core/mutex.ts'
import { type Clock, isoTime } from '../../disk/clock.ts'
import type { Files } from '../storage/ports/files.ts'
import type { Store } from '../storage/ports/store.ts'
import type { FileRecord } from '../storage/records/file.ts'
import type { Arrival } from './append-upload.ts'

/** Uploads leave the smaller of this share and these bytes of the disk for store, audit log and output. */
const freeShare = 0.1
const freeBytes = 1024 ** 3
/** Bytes of an upload between checks of the disk, and between checks of the user's other uploads. */
const checkInterval = 1024 * 1024
const shareEvery = 16 * 1024 * 1024
/** Uploads per user that no task uses yet. */
const mostWaiting = 1000
const defaultMostBytes = 20 * 1024 ** 3
const largestFiles = 10

interface Parts {
  readonly store: Pick<Store, 'find'>
  readonly uploads: Uploads
  readonly files: Pick<Files, 'room' | 'size'>
  readonly clock: Clock
  /** See ServerOptions. */
  readonly mostBytes: number | undefined
  readonly maxFileSize: number
}

interface Growth {
  readonly userId: number
  /** Excluded from the sum of the others; null for a new upload. */
  readonly id: string | null
  /** Its final size in bytes, and the part still to come. */
  readonly size: number
  readonly coming: number
}

/** Limits the disk space of uploads, per user and in total. */
interface UploadRoom {
  /** Errors: `too_large` if there is no room. */
  demand(growth: Growth): Promise<void>
  /** Bytes of an upload; refuses those that exceed the room like `demand`, before and while they arrive. */
  guarded(file: FileRecord, arrival: Arrival): Promise<AsyncIterable<Uint8Array>>
}

export function createUploadRoom({ store, uploads, files, clock, ...bounds }: Parts): UploadRoom {
  const { maxFileSize, mostBytes = Math.max(defaultMostBytes, largestFiles * maxFileSize) } = bounds

  const isNeeded = async ({ id }: FileRecord) =>
    (await store.find('tasks', 'fileId', id)).length > 0 ||
    (await store.find('schedules', 'fileId', id)).length > 0

  const sizeOf = async ({ id, size }: FileRecord) => size ?? (await files.size(id))

  async function sum(of: readonly FileRecord[]): Promise<number> {
    let total = 0
    for (const file of of) total += await sizeOf(file)
    return total
  }

  async function demandShare({ userId, id, size }: Growth): Promise<void> {
    const now = isoTime(clock.now())
    const young = (await uploads.all()).filter(
      (file) => file.userId === userId && file.id !== id && file.expiresAt > now,
    )
    const fits = async (of: readonly FileRecord[]) =>
      of.length < mostWaiting && (await sum(of)) + size <= mostBytes
    if (await fits(young)) return
    const waiting: FileRecord[] = []
    for (const file of young) if (!(await isNeeded(file))) waiting.push(file)
    if (await fits(waiting)) return
    throw new RsmError(
      'too_large',
      `Limit reached: your unused uploads may have ${formatMiB(mostBytes)} (--max-upload-bytes) and be at most ${mostWaiting}; ${advice}`,
    )
  }

  /** The only limit for bytes from a host, because they belong to no user. */
  async function demandFree(coming: number): Promise<void> {
    const room = await files.room()
    if (room === null) return
    const least = Math.min(freeShare * room.size, freeBytes)
    if (room.available - coming >= least) return
    throw new RsmError(
      'too_large',
      `No room for the upload: the server's disk has ${formatMiB(room.available)} free, and uploads must leave ${formatMiB(least)}; ${advice}`,
    )
  }

  async function demand(growth: Growth): Promise<void> {
    await demandFree(growth.coming)
    await demandShare(growth)
  }

  async function* whileRoom({ id, userId, taskId, size }: FileRecord, { offset, bytes }: Arrival) {
    let end = offset
    let next = offset + checkInterval
    let nextShare = offset + shareEvery
    for await (const piece of bytes) {
      end += piece.length
      if (end > next) {
        await demandFree(piece.length)
        next = end + checkInterval
      }
      if (taskId === null && end > nextShare) {
        await demandShare({ id, userId, size: size ?? end, coming: 0 })
        nextShare = end + shareEvery
      }
      yield piece
    }
  }

  return {
    demand,
    async guarded(file, arrival) {
      const { id, userId, taskId, size } = file
      const coming = arrival.length ?? 0
      if (taskId !== null) await demandFree(coming)
      else await demand({ userId, id, size: size ?? arrival.offset + coming, coming })
      return whileRoom(file, arrival)
    },
  }
}

const formatMiB = (bytes: number) =>
  `${Math.max(0, Math.floor(bytes / 1024 ** 2)).toLocaleString('en-US')} MiB`
const advice = 'remove unused uploads: rsm files list, rsm files remove'

/** Changed records read one by one; above, all are read. */
const mostChanged = 10_000

/** Uploads of a store, cached because most of its files are fetched from hosts. */
interface Uploads {
  all(): Promise<Readonly<FileRecord>[]>
}

export function createUploads(store: Pick<Store, 'query' | 'getMany' | 'watch'>): Uploads {
  let known: Map<string, Readonly<FileRecord>> | null = null
  const reads = new Mutex()
  const changed = new Set<string>()

  store.watch('files', (id) => {
    if (known === null) return
    if (id === null || changed.size >= mostChanged) {
      known = null
      changed.clear()
    } else changed.add(String(id))
  })

  async function read(): Promise<Readonly<FileRecord>[]> {
    const uploads = known ?? new Map<string, Readonly<FileRecord>>()
    const isNew = known === null
    // From here on `watch` collects changes, so that a change during the read is read next time.
    known = uploads
    const ids = [...changed]
    changed.clear()
    const records = isNew ? (await store.query('files')).items : await store.getMany('files', ids)
    for (const id of ids) uploads.delete(id)
    for (const file of records) if (file?.taskId === null) uploads.set(file.id, file)
    return [...uploads.values()]
  }

  return {
    all: () =>
      reads.run(() =>
        read().catch((error: unknown) => {
          known = null
          throw error
        }),
      ),
  }
}
