import { RsmError } from '../core/errors.ts'
import type { TaskSummary } from '../core/protocol/http/tasks.ts'
import type { Client } from './client.ts'

/** Among so many of the newest tasks an id is looked for by a part of it: one page. */
const searched = 500
/** Of those that a part may mean, so many are named. */
const mostNamed = 5

/** The newest task that the caller started, whatever others have started since; `not_found` where there is none. */
export async function latestTask({ tasks, auth }: Pick<Client, 'tasks' | 'auth'>): Promise<TaskSummary> {
  const { username } = await auth.me()
  const [newest] = (await tasks.list({ createdBy: username, size: 1 })).content
  if (newest === undefined)
    throw new RsmError('not_found', `${username} has started no task yet`, {
      hint: 'those of others: rsm tasks list',
    })
  return newest
}

/**
 * The one task whose id begins or ends with `part`. Ids begin with their time, so that the first characters are those of
 * all tasks of some minutes; the last are random. Rejects with `not_found`, which names those that it may mean.
 */
export async function taskOfPart({ tasks }: Pick<Client, 'tasks'>, part: string): Promise<TaskSummary> {
  const typed = part.toUpperCase()
  const { content, totalElements } = await tasks.list({ size: searched })
  const found = content.filter(({ taskId }) => {
    const id = taskId.toUpperCase()
    return id.startsWith(typed) || id.endsWith(typed)
  })
  const [task] = found
  if (task === undefined) {
    const looked = totalElements > searched ? `only the newest ${searched} are looked through; ` : ''
    throw new RsmError('not_found', `no such task: ${part}`, { hint: `${looked}rsm tasks list` })
  }
  if (found.length === 1) return task
  const named = found.slice(0, mostNamed).map(({ taskId }) => taskId)
  const more = found.length > named.length ? ` and ${found.length - named.length} more` : ''
  throw new RsmError('not_found', `${part} may be ${named.join(', ')}${more}`, {
    hint: 'the last 6 characters of an id tell it from others',
  })
}
