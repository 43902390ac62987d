import { RsmError } from '../../core/errors.ts'
import type { Page } from '../../core/protocol/http/common.ts'
import type {
  File,
  FilePartQuery,
  FileQuery,
  Upload,
  UploadQuery,
  UploadRemoved,
} from '../../core/protocol/http/files.ts'
import { type FileKeeper, fetchedId } from '../files/files.ts'
import { pageOf, slicePage } from '../storage/paging.ts'
import type { UserCaller } from '../storage/ports/caller.ts'
import type { FileRecord } from '../storage/records/file.ts'
import { type Context, notFound } from './context.ts'

/** Bytes of a request; `length` is null if unknown. */
export interface Body {
  readonly bytes: AsyncIterable<Uint8Array>
  readonly length: number | null
}

/** Uploads of a user, and files that tasks fetched. Another user's upload is `not_found`. */
export interface FileService {
  /** Stores the whole body, or begins an upload if there is none. */
  create(caller: UserCaller, query: FileQuery, body: Body): Promise<File>
  append(caller: UserCaller, fileId: string, query: FilePartQuery, body: Body): Promise<File>
  get(caller: UserCaller, fileId: string): Promise<File>
  /** One's own uploads, or all for an ADMIN; largest first. */
  list(caller: UserCaller, query: UploadQuery): Promise<Page<Upload>>
  /** One's own, or any for an ADMIN. Errors: `conflict` while a running task or a schedule uses it. */
  remove(caller: UserCaller, fileId: string): Promise<UploadRemoved>
  /** The complete file that a task fetched from a host. Errors: `not_found`. */
  fetched(taskId: string, hostId: number): Promise<FileRecord>
}

const maySee = (caller: UserCaller, { userId }: FileRecord): boolean =>
  caller.role === 'ADMIN' || caller.id === userId

export function createFileService({
  store,
  files,
}: Pick<Context, 'store'> & { files: FileKeeper }): FileService {
  async function find({ id: userId }: UserCaller, fileId: string): Promise<FileRecord> {
    const file = await store.get('files', fileId)
    if (!file || file.taskId !== null || file.userId !== userId) throw notFound('file', fileId)
    return file
  }

  function toApi(file: FileRecord, offset: number): File {
    const { id: fileId, name = null, size, sha256, isComplete, sealedKey, createdAt, expiresAt } = file
    return {
      fileId,
      name,
      size,
      offset,
      sha256,
      isComplete,
      isSecret: sealedKey !== null,
      createdAt,
      expiresAt,
    }
  }

  return {
    async create(
      { id: userId },
      { name = null, size = null, sha256 = null, secret = false },
      { bytes, length },
    ) {
      const begun = await files.begin({ userId, name, size, sha256, isSecret: secret })
      if (length === 0 && size !== 0) return toApi(begun, 0)
      try {
        const { file, offset } = await files.add(begun, { bytes, length, offset: 0, end: true })
        return toApi(file, offset)
      } catch (error) {
        // The client never learned its id.
        await files.remove(begun)
        throw error
      }
    },
    async append(caller, fileId, { offset, end = false }, body) {
      const grown = await files.add(await find(caller, fileId), { ...body, offset, end })
      return toApi(grown.file, grown.offset)
    },
    async get(caller, fileId) {
      const file = await find(caller, fileId)
      return toApi(file, await files.offset(file))
    },
    async list(caller, query) {
      const all = (await files.uploads()).filter((file) => maySee(caller, file))
      const ids = [...new Set(all.map(({ userId }) => userId))]
      const users = new Map((await store.getMany('users', ids)).map((user, at) => [ids[at], user?.username]))
      const wanted = query.user?.toLowerCase()
      const found = all
        .map((file) => ({ file, user: users.get(file.userId) ?? null }))
        .filter(({ user }) => wanted === undefined || user?.toLowerCase() === wanted)
      const sized = await Promise.all(
        found.map(async ({ file, user }) => ({ ...toApi(file, await files.offset(file)), user })),
      )
      sized.sort((a, b) => b.offset - a.offset || (a.fileId < b.fileId ? -1 : 1))
      return pageOf(slicePage(sized, query), sized.length, query)
    },
    async remove(caller, fileId) {
      const file = await store.get('files', fileId)
      if (!file || file.taskId !== null || !maySee(caller, file)) throw notFound('file', fileId)
      await files.withdraw(file)
      return { fileId }
    },
    async fetched(taskId, hostId) {
      const file = await store.get('files', fetchedId(taskId, hostId))
      if (file?.isComplete) return file
      throw new RsmError('not_found', `Task ${taskId} has no file from host ${hostId}`)
    },
  }
}
