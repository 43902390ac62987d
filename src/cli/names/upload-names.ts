import type { Client } from '../../client/client.ts'
import { allPages } from '../../client/http/pages.ts'
import { RsmError } from '../../core/errors.ts'
import type { Upload } from '../../core/protocol/http/files.ts'
import { oneOfPart, partOfId } from './task-names.ts'

/** An upload by its id, or by 6 or more of its first or last characters. Errors: `not_found`, also where several fit. */
export async function findUpload(
  { files }: Pick<Client, 'files'>,
  wanted: string,
): Promise<Upload & { readonly id: string }> {
  const { content } = await allPages((paging) => files.list(paging), {})
  const ids = content.map(({ fileId }) => fileId)
  const id = partOfId.test(wanted) ? oneOfPart({ noun: 'upload', topic: 'files' }, wanted, ids, 0) : wanted
  const found = content.find(({ fileId }) => fileId === id)
  if (found === undefined)
    throw new RsmError('not_found', `no such upload: ${wanted}`, { hint: 'rsm files list' })
  return { ...found, id }
}
