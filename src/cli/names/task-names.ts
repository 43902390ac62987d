import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { nearest, unknownName } from '../../core/text/nearest.ts'

/** Parts of ids are looked up among the newest 500, which is one page. */
export const searched = 500
const mostNamed = 5
/** Some of an id: of the characters that ids are made of, enough to tell them apart, and fewer than all 26. */
export const partOfId = /^[0-9A-HJKMNP-TV-Z]{6,25}$/i
/** No id is a word of letters alone. */
const word = /^[a-z]+$/i

/** Rejects `latst` with a suggestion, before the server is asked. */
export function refuseMisspelt(noun: string, topic: string, wanted: string): void {
  if (word.test(wanted) && nearest(wanted, ['latest']) !== undefined)
    throw new RsmError('not_found', unknownName(noun, wanted, ['latest']), { hint: `rsm ${topic} list` })
}

/**
 * The one id that begins or ends with `part`. Ids begin with their time, so that the first characters are those of all of
 * some minutes; the last are random. Rejects with `not_found`, which names those that it may mean; `total`: so many there are
 * beside those that are looked through.
 */
export function oneOfPart(
  { noun, topic }: { readonly noun: string; readonly topic: string },
  part: string,
  ids: readonly string[],
  total: number,
): string {
  const typed = part.toUpperCase()
  const found = ids.filter((each) => {
    const id = each.toUpperCase()
    return id.startsWith(typed) || id.endsWith(typed)
  })
  const [id] = found
  if (id === undefined) {
    const looked = total > searched ? `only the newest ${searched} are looked through; ` : ''
    throw new RsmError('not_found', `no such ${noun}: ${part}`, { hint: `${looked}rsm ${topic} list` })
  }
  if (found.length === 1) return id
  const named = found.slice(0, mostNamed)
  const more = found.length > named.length ? ` and ${found.length - named.length} more` : ''
  throw new RsmError('not_found', `${part} may be ${named.join(', ')}${more}`, {
    hint: 'the last 6 characters of an id tell it from others',
  })
}

/** The newest task that the caller started, whatever others have started since; `not_found` where there is none. */
export async function latestTask({ tasks, auth }: Pick<Client, 'tasks' | 'auth'>): Promise<TaskSummary> {
  const { username } = await auth.me()
  const [newest] = (await tasks.list({ createdBy: username, size: 1 })).content
  if (newest === undefined)
    throw new RsmError('not_found', `${username} has started no task yet`, {
      hint: 'tasks of all users: rsm tasks list',
    })
  return newest
}

export async function taskOfPart({ tasks }: Pick<Client, 'tasks'>, part: string): Promise<string> {
  const { content, totalElements } = await tasks.list({ size: searched })
  const ids = content.map(({ taskId }) => taskId)
  return oneOfPart({ noun: 'task', topic: 'tasks' }, part, ids, totalElements)
}
