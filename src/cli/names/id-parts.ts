import type { Client } from '../../client/client.ts'
import { allPages } from '../../client/http/pages.ts'
import { RsmError } from '../../core/errors.ts'
import type { Upload } from '../../core/protocol/http/files.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import type { Terminal } from '../../core/protocol/http/terminals.ts'
import { nearest, unknownName } from '../../core/text/nearest.ts'

/** Partial ids are searched among the newest 500, which is one page. */
export const searched = 500
const mostNamed = 5
/** A partial id: characters of a ULID, enough to be distinctive, fewer than all 26. */
export const partOfId = /^[0-9A-HJKMNP-TV-Z]{6,25}$/i
/** A word of letters only, which is not an id. */
const word = /^[a-z]+$/i

type TerminalServices = Pick<Client, 'terminals' | 'auth'>

/** Throws for `latst`, with a suggestion, before any request. */
export function refuseMisspelt(noun: string, topic: string, wanted: string): void {
  if (word.test(wanted) && nearest(wanted, ['latest']) !== undefined)
    throw new RsmError('not_found', unknownName(noun, wanted, ['latest']), { hint: `rsm ${topic} list` })
}

/** The caller's newest task. Errors: `not_found` if there is none. */
export async function latestTask({ tasks, auth }: Pick<Client, 'tasks' | 'auth'>): Promise<TaskSummary> {
  const { username } = await auth.me()
  const [newest] = (await tasks.list({ createdBy: username, size: 1 })).content
  if (newest === undefined)
    throw new RsmError('not_found', `${username} has not started a task yet`, {
      hint: 'tasks of all users: rsm tasks list',
    })
  return newest
}

export async function taskOfPart({ tasks }: Pick<Client, 'tasks'>, part: string): Promise<string> {
  const { content, totalElements } = await tasks.list({ size: searched })
  const ids = content.map(({ taskId }) => taskId)
  return oneOfPart({ noun: 'task', topic: 'tasks' }, part, ids, totalElements)
}

/** Id of a recorded session, given as `latest`, a partial id or a full one. */
export async function findTerminalId(services: TerminalServices, wanted: string): Promise<string> {
  if (wanted === 'latest') return (await latestTerminal(services)).sessionId
  if (!partOfId.test(wanted)) {
    refuseMisspelt('recording', 'recordings', wanted)
    return wanted
  }
  const page = await services.terminals.list({ recorded: true, size: searched })
  const ids = page.content.map(({ sessionId }) => sessionId)
  return oneOfPart({ noun: 'recording', topic: 'recordings' }, wanted, ids, page.totalElements)
}

async function latestTerminal({ terminals, auth }: TerminalServices): Promise<Terminal> {
  const { username } = await auth.me()
  const [newest] = (await terminals.list({ recorded: true, user: username, size: 1 })).content
  if (newest === undefined)
    throw new RsmError('not_found', `${username} has no recorded session yet`, {
      hint: 'sessions of all users: rsm recordings list',
    })
  return newest
}

/** Finds an upload by its id, or by its first or last 6 or more characters. Errors: `not_found`, also if several match. */
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

/**
 * The only id that starts or ends with `part`. Ids of the same few minutes share their first characters; the last ones are
 * random. Throws `not_found`, listing the candidates if there are several. `total`: number of records on the server.
 */
function oneOfPart(
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
    const looked = total > searched ? `only the newest ${searched} are searched; ` : ''
    throw new RsmError('not_found', `no such ${noun}: ${part}`, { hint: `${looked}rsm ${topic} list` })
  }
  if (found.length === 1) return id
  const named = found.slice(0, mostNamed)
  const more = found.length > named.length ? ` and ${found.length - named.length} more` : ''
  throw new RsmError('not_found', `${part} matches ${named.join(', ')}${more}`, {
    hint: 'use the last 6 characters of the id, which are random',
  })
}
