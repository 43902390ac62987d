import { RsmError } from '../../../core/errors.ts'
import type { Page, PageQuery } from '../../../core/protocol/http/common.ts'
import type { TaskFile } from '../../../core/protocol/http/files.ts'
import { expandPath } from '../../../core/tasks/remote-path.ts'
import { fetchedId } from '../../files/files.ts'
import { pageOf, windowOf } from '../../storage/paging.ts'
import type { TaskRecord } from '../../storage/records/task.ts'
import type { Context } from '../context.ts'

/** What has come from each host of a task, in the order of its plan. Errors: `not_found` for a task that fetches nothing. */
export async function fetchedBy(
  { store, engine }: Pick<Context, 'store' | 'engine'>,
  task: TaskRecord,
  query: PageQuery,
): Promise<Page<TaskFile>> {
  const { id, type, fetch, hostCount } = task
  if (!fetch) throw new RsmError('not_found', `Task ${id} fetches no files: its type is ${type}`)
  const shown = await engine.results(task, windowOf(query))
  const files = await store.getMany(
    'files',
    shown.map(({ hostId }) => fetchedId(id, hostId)),
  )
  const content = shown.map(({ hostId, hostname }, at) => {
    const file = files[at]
    const { size = null, sha256 = null } = file?.isComplete ? file : {}
    return {
      hostId,
      hostname,
      path: expandPath(fetch.path, hostname) ?? fetch.path,
      kind: fetch.kind,
      size,
      sha256,
    }
  })
  return pageOf(content, hostCount, query)
}
