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
import type { Api } from '../http/api.ts'

/** A file that a task fetched from a host, from an offset on. */
export interface FetchedFile {
  /** Size of the whole file, in bytes. */
  readonly size: number
  readonly sha256: string
  readonly bytes: AsyncIterable<Buffer>
}

/** Uploads, and files that tasks fetched (contract §13). */
export interface ClientFileService {
  list(query: UploadQuery): Promise<Page<Upload>>
  /** Errors: `conflict` while a running task or a schedule needs it. */
  remove(fileId: string): Promise<UploadRemoved>
  /** Begins an upload. `too_large` if the server accepts no file of that size. */
  begin(query: FileQuery): Promise<File>
  /** `not_found` for another user's upload. */
  get(fileId: string): Promise<File>
  /** Appends `length` bytes. Errors: `conflict` with `data: {offset}` at another offset, or beside another writer. */
  append(fileId: string, query: FilePartQuery, body: AsyncIterable<Uint8Array>, length: number): Promise<File>
  /** Starts at the byte `from`. `not_found` if the task has no file of that host. */
  fetched(taskId: string, hostId: number, from: number): Promise<FetchedFile>
}

export function filesOver(api: Api): ClientFileService {
  const path = (fileId: string) => `/api/files/${encodeURIComponent(fileId)}`
  const has = ['fileId', 'offset', 'isComplete']
  return {
    list: (query) => api.page('/api/files', query),
    remove: (fileId) => api.call('DELETE', path(fileId)),
    begin: (query) => api.call('POST', '/api/files', { query, has }),
    get: (fileId) => api.call('GET', path(fileId), { has }),
    append: (fileId, query, body, length) =>
      api.call('PUT', path(fileId), { query, bytes: { body, length }, has }),
    async fetched(taskId, hostId, from) {
      const range: Record<string, string> = from > 0 ? { range: `bytes=${from}-` } : {}
      const { status, headers, body, bytes } = await api.open(
        `/api/tasks/${encodeURIComponent(taskId)}/files/${hostId}`,
        { accept: '*/*', ...range },
      )
      const size = from > 0 ? headers['content-range']?.split('/')[1] : headers['content-length']
      const sha256 = headers.etag?.replaceAll('"', '')
      if (size !== undefined && sha256 !== undefined && status === (from > 0 ? 206 : 200))
        return { size: Number(size), sha256, bytes }
      body.destroy()
      throw new RsmError('internal', `${api.url} answered ${status} without the requested file`)
    },
  }
}
