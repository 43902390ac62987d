import { PageOf } from '../../core/protocol/http/common.ts'
import {
  File,
  FilePartQuery,
  FileQuery,
  Upload,
  UploadQuery,
  UploadRemoved,
} from '../../core/protocol/http/files.ts'
import type { AppInstance } from '../http/app.ts'
import { userOf } from '../http/auth.ts'
import { fileIdOf, operation } from '../http/operation.ts'
import { bodyOf } from './bytes.ts'
import type { RouteDependencies } from './dependencies.ts'

const execute = { users: 'execute' } as const
const tag = 'files' as const

export function fileRoutes(app: AppInstance, { services: { files } }: RouteDependencies): void {
  app.get(
    '/api/files',
    operation({
      id: 'listFiles',
      tag,
      summary: "List one's own uploads, the largest first; an ADMIN's list has everyone's",
      allow: execute,
      query: UploadQuery,
      answer: PageOf(Upload),
    }),
    (request) => files.list(userOf(request), request.query),
  )
  app.delete(
    '/api/files/:fileId',
    operation({
      id: 'removeFile',
      tag,
      summary: "Remove an upload that nothing needs; an ADMIN removes anyone's",
      allow: execute,
      answer: UploadRemoved,
      errors: ['conflict'],
      usesReserve: true,
      audit: { action: 'file.delete', object: 'file' },
    }),
    (request) => files.remove(userOf(request), fileIdOf(request)),
  )
  app.post(
    '/api/files',
    operation({
      id: 'createFile',
      tag,
      summary: 'Upload a file for tasks; without a body, start an upload in parts',
      allow: execute,
      query: FileQuery,
      bytes: true,
      answer: File,
      created: true,
      audit: { action: 'file.upload', object: 'file' },
    }),
    (request) => files.create(userOf(request), request.query, bodyOf(request)),
  )
  app.get(
    '/api/files/:fileId',
    operation({
      id: 'getFile',
      tag,
      summary: "Read the progress of one's own upload",
      allow: execute,
      answer: File,
    }),
    (request) => files.get(userOf(request), fileIdOf(request)),
  )
  app.put(
    '/api/files/:fileId',
    operation({
      id: 'appendFile',
      tag,
      summary: "Append to one's own upload; a wrong offset is a 409 with the right one",
      allow: execute,
      query: FilePartQuery,
      bytes: true,
      answer: File,
      errors: ['conflict'],
    }),
    (request) => files.append(userOf(request), fileIdOf(request), request.query, bodyOf(request)),
  )
}
