import type { Client } from '../../client/client.ts'
import { allPages, firstOf } from '../../client/http/pages.ts'
import { RsmError } from '../../core/errors.ts'
import type { Enrollment } from '../../core/protocol/http/agent.ts'
import type { Cluster, Target } from '../../core/protocol/http/clusters.ts'
import type { NamedQuery, Page } from '../../core/protocol/http/common.ts'
import type { Host, HostQuery } from '../../core/protocol/http/hosts.ts'
import type { Schedule, ScheduleSummary } from '../../core/protocol/http/schedules.ts'
import type { Script } from '../../core/protocol/http/scripts.ts'
import type { Token, User } from '../../core/protocol/http/users.ts'
import type { Webhook } from '../../core/protocol/http/webhooks.ts'
import { compareNatural } from '../../core/selector/natural-order.ts'
import type { Services } from '../../core/services.ts'
import { matchesNone, unknownName } from '../../core/text/nearest.ts'

interface Listed<T> {
  list(query: NamedQuery): Promise<Page<T>>
  get?(id: number): Promise<T>
}
interface Named {
  id: number
  name?: string | null
  username?: string
}

/** The result of `list`, or null if an older server rejects the query's `field`. */
async function unlessRefused<T>(field: string, list: () => Promise<Page<T>>): Promise<Page<T> | null> {
  try {
    return await list()
  } catch (error) {
    if (error instanceof RsmError && error.fields.some((fault) => fault.field === field)) return null
    throw error
  }
}

/** The first `limit` hosts in natural order of names, of those that match any selector; of all without selectors. */
export async function hostsByName(
  { hosts }: Pick<Services, 'hosts'>,
  query: HostQuery,
  selectors: readonly string[],
  limit?: number,
): Promise<Page<Host>> {
  const list = (paged: HostQuery) => hosts.list(paged)
  // One request per selector: if joined, operators of one would apply to the others.
  const parts = selectors.length === 0 ? [query] : selectors.map((selector) => ({ ...query, selector }))
  if (limit !== undefined && parts.length === 1) {
    const sorted = { ...query, ...parts[0], sort: 'hostname' as const }
    const page = await unlessRefused('sort', () => allPages(list, sorted, limit))
    if (page) return page
  }
  const found = new Map<number, Host>()
  for (const part of parts) for (const host of (await allPages(list, part)).content) found.set(host.id, host)
  const content = [...found.values()].sort((a, b) => compareNatural(a.hostname, b.hostname))
  const { length: size } = content
  return firstOf({ content, page: 0, size, totalElements: size, totalPages: 1 }, limit)
}

/** Records fetched to suggest a name; limited, because scripts include their text. */
const mostForNearest = 100

const nameOf = ({ username, name }: Named) => username ?? name ?? null

/** The only record with this name, ignoring case, else the one with this id. Errors: `not_found` with the nearest name. */
async function findNamed<T extends Named>(
  noun: string,
  topic: string,
  service: Listed<T>,
  wanted: string,
): Promise<T> {
  const list = (query: NamedQuery) => service.list(query)
  const isNamed = (each: T) => nameOf(each)?.toLowerCase() === wanted.toLowerCase()
  const answer = await unlessRefused('name', () => allPages(list, { name: wanted }))
  let content = answer?.content ?? []
  if (answer?.totalElements === 0 && service.get && /^[1-9]\d{0,14}$/.test(wanted)) {
    const found = await service.get(Number(wanted)).catch((error: unknown) => {
      if (!(error instanceof RsmError && error.code === 'not_found')) throw error
    })
    if (found) return found
  }
  // Fetch records to suggest the nearest name; all of them from a server that cannot search by name or id.
  const most = answer && service.get ? mostForNearest : undefined
  if (content.length === 0) ({ content } = await allPages(list, {}, most))
  const named = content.filter(isNamed)
  if (named.length > 1) {
    const ids = named.map(({ id }) => id).join(', ')
    throw new RsmError('usage', `${named.length} ${noun}s are named ${wanted}`, {
      hint: `use the id of one: ${ids} (rsm ${topic} list)`,
    })
  }
  const found = named[0] ?? content.find((each) => String(each.id) === wanted)
  if (found !== undefined) return found
  const names = content.flatMap((each) => nameOf(each) ?? [])
  throw new RsmError('not_found', unknownName(noun, wanted, names), { hint: `rsm ${topic} list` })
}

export function findCluster({ clusters }: Pick<Services, 'clusters'>, name: string): Promise<Cluster> {
  return findNamed('cluster', 'clusters', clusters, name)
}

/** `noun`: `file or script` if the name could also have been a file. */
export async function findScript(
  { scripts }: Pick<Services, 'scripts'>,
  name: string,
  noun: 'script' | 'file or script' = 'script',
): Promise<Script> {
  const { content, params = [], ...found } = await findNamed(noun, 'scripts', scripts, name)
  // Unfiltered lists omit the text.
  return content === undefined ? scripts.get(found.id) : { ...found, content, params }
}

export async function findSchedule(
  { schedules }: Pick<Services, 'schedules'>,
  name: string,
): Promise<Schedule> {
  const found = await findNamed<ScheduleSummary>('schedule', 'schedules', schedules, name)
  return isWhole(found) ? found : schedules.get(found.id)
}

const isWhole = (schedule: ScheduleSummary): schedule is Schedule => schedule.params !== undefined

export function findUser({ users }: Pick<Services, 'users'>, name: string): Promise<User> {
  return findNamed('user', 'users', users, name)
}

/** Explains an empty list filtered by user: rejects for an unknown user. Resolves if the caller may not list users. */
export async function refuseUnknownUser(
  services: Pick<Services, 'users'>,
  name: string | undefined,
): Promise<void> {
  if (name === undefined) return
  await findUser(services, name).catch((error: unknown) => {
    if (!(error instanceof RsmError && error.code === 'forbidden')) throw error
  })
}

/** One of the caller's own tokens. Errors: `usage` with the ids if several have the name. */
export function findToken({ tokens }: Pick<Services, 'tokens'>, name: string): Promise<Token> {
  return findNamed('token', 'tokens', tokens, name)
}

/** Errors: `usage` with the ids if several have the name. */
export function findEnrollment(
  { enrollments }: Pick<Services, 'enrollments'>,
  name: string,
): Promise<Enrollment> {
  return findNamed('enrollment token', 'enrollments', enrollments, name)
}

export function findWebhook({ webhooks }: Pick<Services, 'webhooks'>, name: string): Promise<Webhook> {
  return findNamed('webhook', 'webhooks', webhooks, name)
}

export async function findHost(services: Pick<Services, 'hosts'>, name: string): Promise<Host> {
  const page = await services.hosts.list({ selector: name, size: 2 })
  const [host] = page.content
  if (host === undefined)
    throw new RsmError('not_found', unknownName('host', name, []), { hint: 'rsm hosts list' })
  if (page.totalElements > 1)
    throw new RsmError('usage', `${name} matches ${page.totalElements} hosts; choose one`, {
      hint: `rsm hosts list -w '${name}'`,
    })
  return host
}

/** All hosts of a target, in natural order. Errors: like a task with this target. */
export async function selectHosts(
  { hosts }: { readonly hosts: Pick<Services['hosts'], 'select'> },
  target: Target,
): Promise<Host[]> {
  return (await allPages((query) => hosts.select({ target }, query), {})).content
}

export const isEmptyTarget = (error: unknown): error is RsmError =>
  error instanceof RsmError && error.code === 'not_found' && error.message.startsWith(matchesNone)

/** Explains an empty target or unknown hosts: there may be no hosts yet. */
export async function explainNoHosts(client: Client, error: unknown): Promise<never> {
  if (!(error instanceof RsmError) || error.code !== 'not_found') throw error
  const { message, fields } = error
  // A failure of this request must not hide the first error.
  const page = await client.hosts.list({ size: 1 }).catch(() => undefined)
  if (page?.totalElements === 0)
    throw isEmptyTarget(error)
      ? new RsmError('not_found', 'there are no hosts yet', { fields, hint: 'rsm hosts join' })
      : new RsmError('not_found', message, { fields, hint: 'there are no hosts yet: rsm hosts join' })
  if (!isEmptyTarget(error)) throw error
  const why = message.slice(`${matchesNone}: `.length) || `the target ${matchesNone}`
  throw new RsmError('not_found', `nothing to run on: ${why}`, { fields, hint: 'rsm hosts list' })
}

export function namesOneHost(words: readonly string[]): boolean {
  return words.length === 1 && /^(?:[\w.-]+|@id:\d+)$/.test(words[0] ?? '')
}

/** Hosts that match any of the selectors, in natural order. Errors: `not_found` for a selector without hosts. */
export async function findHosts(
  services: Pick<Services, 'hosts'>,
  selectors: readonly string[],
): Promise<Host[]> {
  const found = new Map<number, Host>()
  for (const selector of selectors) {
    const { content } = await allPages((query) => services.hosts.list(query), { selector })
    if (content.length === 0)
      throw new RsmError('not_found', `${selector} matches no host`, { hint: 'rsm hosts list' })
    for (const host of content) found.set(host.id, host)
  }
  return [...found.values()].sort((a, b) => compareNatural(a.hostname, b.hostname))
}

/** Id of a task, given as `latest` (the caller's newest), a partial id, or a full id, which costs no request. */
export async function findTaskId(services: Pick<Client, 'tasks' | 'auth'>, wanted: string): Promise<string> {
  const { latestTask, partOfId, refuseMisspelt, taskOfPart } = await import('./id-parts.ts')
  if (wanted === 'latest') return (await latestTask(services)).taskId
  if (partOfId.test(wanted)) return taskOfPart(services, wanted)
  refuseMisspelt('task', 'tasks', wanted)
  return wanted
}

export const taskDescription = 'task id, its first or last 6 characters, or latest'
export const tasksDescription = 'task ids, their first or last 6 characters, or latest'
