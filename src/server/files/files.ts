import { invalid, RsmError } from '../../core/errors.ts'
import type { CopyOrder } from '../../core/protocol/messages.ts'
import { unfoldIds } from '../../core/tasks/id-set.ts'
import type { Age } from '../../disk/agreed-clock.ts'
import { type Clock, isoTime } from '../../disk/clock.ts'
import type { Log } from '../../disk/log.ts'
import { opaqueId, timeOfId } from '../storage/ids.ts'
import type { LocalFacts } from '../storage/local-facts.ts'
import type { Files } from '../storage/ports/files.ts'
import type { Keys } from '../storage/ports/keys.ts'
import type { Store, Transaction } from '../storage/ports/store.ts'
import type { FileRecord } from '../storage/records/file.ts'
import { type Arrival, createAppendUpload, type GrownFile, tooLarge } from './append-upload.ts'
import { createBlobCodec } from './blob-codec.ts'
import { createUploadRoom, createUploads } from './upload-room.ts'

/** Bytes (contract §13). */
export const defaultMaxFileSize = 2 * 1024 ** 3
/** Milliseconds that an unused upload is kept (contract §13). */
const keptFor = 24 * 3600_000
/** Characters of an opaque id. */
const idLength = 26

interface Parts {
  readonly store: Store
  readonly files: Files
  readonly keys: Keys
  readonly facts: LocalFacts
  readonly agreed: { age(): Age }
  readonly clock: Clock
  readonly log: Log
  readonly maxFileSize: number
  /** See ServerOptions. */
  readonly maxUploadBytes?: number | undefined
}

export interface NewFile {
  readonly userId: number
  readonly name?: string | null
  readonly size: number | null
  readonly sha256: string | null
  readonly isSecret: boolean
}

export const fetchedId = (taskId: string, hostId: number): string => `${taskId}-${hostId}`

export interface FileKeeper {
  readonly maxFileSize: number
  begin(file: NewFile): Promise<FileRecord>
  /** The file that a task fetches from a host; created if it does not exist. */
  fetched(task: { id: string; createdById: number }, hostId: number): Promise<FileRecord>
  offset(file: FileRecord): Promise<number>
  add(file: FileRecord, arrival: Arrival): Promise<GrownFile>
  /** Bytes `from` (inclusive) to `to` (exclusive). */
  read(file: FileRecord, from: number, to: number): AsyncGenerator<Uint8Array>
  remove(file: FileRecord): Promise<void>
  uploads(): Promise<Readonly<FileRecord>[]>
  /** Errors: `conflict` while it is needed. */
  withdraw(file: FileRecord): Promise<void>
  /** Removes files that no task or schedule needs. Returns their number. */
  sweep(): Promise<number>
}

export function createFileKeeper(parts: Parts): FileKeeper {
  const { store, files, keys, facts, agreed, clock, log, maxFileSize } = parts
  const blobs = createBlobCodec(files, keys)
  const uploads = createUploads(store)
  const mostBytes = parts.maxUploadBytes
  const room = createUploadRoom({ store, uploads, files, clock, mostBytes, maxFileSize })
  const appendUpload = createAppendUpload({
    store,
    blobs,
    finish: (id, content) => files.finish(id, content),
    remove,
    discard: (id) => files.remove(id),
    maxFileSize,
  })

  function recordOf(id: string, userId: number, taskId: string | null): FileRecord {
    const now = clock.now()
    return {
      id,
      userId,
      size: null,
      sha256: null,
      isComplete: false,
      sealedKey: null,
      createdAt: isoTime(now),
      expiresAt: isoTime(now + keptFor),
      taskId,
    }
  }

  /** Removes record and bytes, unless `isKept` says that the file is needed. */
  async function removeUnless(
    id: string,
    isKept: (tx: Transaction, file: FileRecord) => Promise<boolean>,
  ): Promise<boolean> {
    const isGone = await store.transact(async (tx) => {
      await tx.lock(`files/${id}`)
      const file = await tx.get('files', id)
      if (!file || (await isKept(tx, file))) return false
      tx.remove('files', id)
      return true
    })
    if (isGone) await files.remove(id)
    return isGone
  }

  async function remove({ id }: FileRecord): Promise<void> {
    await removeUnless(id, () => Promise.resolve(false))
  }

  async function isNeeded(
    tx: Transaction,
    { id, taskId, sealedKey, isComplete }: FileRecord,
  ): Promise<boolean> {
    if (taskId !== null) {
      const task = await tx.get('tasks', taskId)
      return task !== undefined && (isComplete || task.status === 'RUNNING')
    }
    if ((await tx.find('schedules', 'fileId', id)).length > 0) return true
    const tasks = await tx.find('tasks', 'fileId', id)
    return sealedKey === null ? tasks.length > 0 : tasks.some(({ status }) => status === 'RUNNING')
  }

  /** As `isNeeded`, but also true before the first task uses the file. */
  async function mayBeNeeded(tx: Transaction, file: FileRecord): Promise<boolean> {
    return (await isNeeded(tx, file)) || (await tx.find('tasks', 'fileId', file.id)).length === 0
  }

  /**
   * Removes bytes without a record, and secret files whose last task's end was missed; returns the latter's
   * number.
   */
  async function removeOrphans(): Promise<number> {
    const age = agreed.age()
    const ids = await files.ids()
    const records = await store.getMany('files', ids)
    let removed = 0
    for (const [at, id] of ids.entries()) {
      const made = timeOfId(id.slice(0, idLength))
      const record = records[at]
      if (record === undefined && (made === null || age(made) >= keptFor)) await files.remove(id)
      if (record !== undefined && record.sealedKey !== null && (await removeUnless(id, mayBeNeeded)))
        removed++
    }
    return removed
  }

  async function endFetch(taskId: string, hostId: number): Promise<void> {
    const id = fetchedId(taskId, hostId)
    await removeUnless(id, (_, { isComplete }) => Promise.resolve(isComplete))
    // A request in progress may leave bytes after the record is gone.
    if ((await store.get('files', id)) === undefined) await files.remove(id)
  }

  /**
   * Removes a secret file with the last task that needs it, unless a schedule uses it; and incomplete fetched
   * files (contract §13).
   */
  async function taskEnded(taskId: string): Promise<void> {
    const task = await store.get('tasks', taskId)
    if (task?.fetch) for (const hostId of unfoldIds(task.hostSet ?? '')) await endFetch(taskId, hostId)
    if (!task?.hasSecretFile) return
    const fileId = task.copy?.file.fileId ?? task.stdin?.fileId
    if (fileId !== undefined) await removeUnless(fileId, isNeeded)
  }
  const inBackground = (work: Promise<void>, taskId: string) =>
    work.catch((error: unknown) =>
      log.warn({ err: error, taskId }, 'removing the files of a task failed; the next sweep retries'),
    )
  facts.subscribe('taskEnded', ({ taskId }) => void inBackground(taskEnded(taskId), taskId))
  facts.subscribe('fetchEnded', ({ taskId, hostId }) => void inBackground(endFetch(taskId, hostId), taskId))

  /** Errors: `conflict` if a schedule or a running task needs it. */
  async function demandUnneeded(tx: Transaction, { id }: FileRecord): Promise<void> {
    const [schedule] = await tx.find('schedules', 'fileId', id)
    if (schedule)
      throw new RsmError(
        'conflict',
        `Schedule ${schedule.name} needs file ${id}: remove the schedule first, or give it another file`,
      )
    const task = (await tx.find('tasks', 'fileId', id)).find(({ status }) => status === 'RUNNING')
    if (task)
      throw new RsmError('conflict', `Task ${task.id} runs with file ${id}: wait for its end, or cancel it`)
  }

  return {
    maxFileSize,
    async begin({ userId, name = null, size, sha256, isSecret }) {
      if (size !== null && size > maxFileSize) throw tooLarge(maxFileSize, size)
      await room.demand({ userId, id: null, size: size ?? 0, coming: size ?? 0 })
      const id = opaqueId(clock.now())
      const sealedKey = isSecret ? blobs.newKey(id) : null
      const file = { ...recordOf(id, userId, null), name, size, sha256, sealedKey }
      await store.transact((tx) => tx.put('files', file))
      return file
    },
    async fetched({ id: taskId, createdById }, hostId) {
      const id = fetchedId(taskId, hostId)
      const known = await store.get('files', id)
      if (known) return known
      const file = recordOf(id, createdById, taskId)
      return store.transact(async (tx) => {
        const other = await tx.get('files', id)
        if (other) return other
        tx.put('files', file)
        return file
      })
    },
    offset: (file) => appendUpload.offset(file),
    async add(file, arrival) {
      const bytes = file.isComplete ? arrival.bytes : await room.guarded(file, arrival)
      const grown = await appendUpload.add(file, { ...arrival, bytes })
      facts.publish('fileBytes', { direction: 'in', bytes: grown.offset - arrival.offset })
      return grown
    },
    async *read(file, from, to) {
      let bytes = 0
      try {
        for await (const piece of blobs.read(file, from, to)) {
          bytes += piece.length
          yield piece
        }
      } finally {
        facts.publish('fileBytes', { direction: 'out', bytes })
      }
    },
    remove,
    uploads: () => uploads.all(),
    async withdraw({ id }) {
      await removeUnless(id, async (tx, file) => {
        await demandUnneeded(tx, file)
        return false
      })
    },
    async sweep() {
      const age = agreed.age()
      const expired = { where: { before: { expiresAt: isoTime(clock.now()) } } }
      let removed = 0
      for (const { id, createdAt } of (await store.query('files', expired)).items)
        if (age(Date.parse(createdAt)) >= keptFor && (await removeUnless(id, isNeeded))) removed++
      return removed + (await removeOrphans())
    },
  }
}

/**
 * Checks the file of a task in the same transaction, and keeps it from being removed until that commits.
 * @throws RsmError `invalid`, naming `field`, if the user has no such file, or it is incomplete
 */
export async function demandFile(
  tx: Transaction,
  fileId: string,
  userId: number,
  field: string,
): Promise<void> {
  const file = await keptFile(tx, fileId)
  wholeFile(file, userId, field)
}

/**
 * Reads a file and keeps it until the transaction commits. Writes the record back unchanged, so that a
 * concurrent removal conflicts and is decided again.
 */
export async function keptFile(tx: Transaction, fileId: string): Promise<FileRecord | undefined> {
  await tx.lock(`files/${fileId}`)
  const file = await tx.get('files', fileId)
  if (file) tx.put('files', file)
  return file
}

/** @throws RsmError `invalid`, as `demandFile` */
export function wholeFile(
  file: FileRecord | undefined,
  userId: number,
  field: string,
): { order: CopyOrder['file']; name: string | null; isSecret: boolean } {
  if (!file || file.taskId !== null || file.userId !== userId)
    throw invalid([{ field, message: 'no such upload: upload it first (POST /api/files)' }])
  const { id: fileId, name = null, size, sha256, isComplete } = file
  if (!isComplete || size === null || sha256 === null)
    throw invalid([{ field, message: 'is not complete yet: continue its upload' }])
  return { order: { fileId, size, sha256 }, name, isSecret: file.sealedKey !== null }
}
