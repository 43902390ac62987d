import { allPages } from '../../client/http/pages.ts'
import { RsmError } from '../../core/errors.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { Target } from '../../core/protocol/http/tasks.ts'
import { reachableWord } from '../../core/selector/group.ts'
import { compareNatural } from '../../core/selector/natural-order.ts'
import type { Services } from '../../core/services.ts'
import { findCluster } from './names.ts'

/** What the options of a command line say about its targets (contract §9). */
export interface TargetOptions {
  readonly hosts: readonly string[]
  readonly clusters: readonly string[]
  readonly all: boolean
  readonly tags: readonly string[]
  readonly exclude: readonly string[]
}

type Lookup = Pick<Services, 'hosts' | 'clusters'>

/** Splits at commas outside of brackets: `a,b[1,3]` is `a` and `b[1,3]`. */
export function splitUnion(selector: string): string[] {
  const parts: string[] = []
  let depth = 0
  let part = ''
  for (const character of selector) {
    if (character === '[') depth++
    else if (character === ']') depth--
    if (character === ',' && depth === 0) {
      parts.push(part)
      part = ''
    } else part += character
  }
  parts.push(part)
  return parts.map((each) => each.trim()).filter((each) => each !== '')
}

/** A selector without operators but the union: it may stand anywhere in a union without changing its meaning. */
const isPlain = (selector: string) => !/[!&^]/.test(selector)

/** A longer selector, in characters, is refused by a server. */
const longestSelector = 65_536

/** As much of a selector as one question holds, encoded: a server takes 16 KiB of head, some proxies 8. */
const longestQuestion = 4000

const encodedLength = (selector: string) => encodeURIComponent(selector).length

/** Whether this can be asked for at once; a longer one goes through `resolveHosts`. */
export const fitsQuestion = (selector: string): boolean => encodedLength(selector) <= longestQuestion

/** The parts of a union that are asked for one by one, as few as hold it. */
async function questionsOf(selector: string): Promise<string[]> {
  if (fitsQuestion(selector) || !isPlain(selector)) return [selector]
  const { expandNodeset } = await import('../../core/selector/nodeset.ts')
  const pieces = splitUnion(selector).flatMap((part) =>
    fitsQuestion(part) || /[@*?]/.test(part) ? [part] : expandNodeset(part),
  )
  const questions: string[][] = []
  let room = 0
  for (const piece of pieces) {
    const length = encodedLength(`,${piece}`)
    if (length > room) {
      questions.push([])
      room = longestQuestion
    }
    questions.at(-1)?.push(piece)
    room -= length
  }
  return questions.map((question) => question.join(','))
}

/** Names and values that stand in a selector as they are. */
const isBare = (text: string) => /^[A-Za-z0-9._/-]+$/.test(text)

/** `@reachable` would be another set of hosts than the cluster that an older server may have under that name. */
const isClusterWord = (name: string) => isBare(name) && name.toLowerCase() !== reachableWord

function splitTag(tag: string): [string, string] {
  const at = tag.indexOf('=')
  if (at < 1)
    throw new RsmError('usage', `--tag takes KEY=VALUE, not ${tag}`, { hint: 'for example: -t role=web' })
  return [tag.slice(0, at), tag.slice(at + 1)]
}

/** No target is a mistake, never every host; so is `--all` beside another (contract §9). */
export function checkTargets(options: TargetOptions): void {
  const named = options.hosts.length + options.clusters.length
  if (options.all && named > 0)
    throw new RsmError('usage', '--all already means every host', {
      hint: 'leave out --all, or -w and -g',
    })
  if (!options.all && named === 0 && options.tags.length === 0)
    throw new RsmError('usage', 'no target hosts', {
      hint: "name them with -w 'web[1-3]', -g CLUSTER, -t KEY=VALUE or --all",
    })
}

/**
 * The options as one selector, or undefined where joining them would change their meaning: operators go from left to
 * right without precedence (contract §8), so only the first part may hold any but the union.
 */
export function joinSelector(options: TargetOptions): string | undefined {
  checkTargets(options)
  if (!options.clusters.every(isClusterWord) || !options.exclude.every(isPlain)) return undefined
  const tags = options.tags.map(splitTag)
  if (!tags.flat().every(isBare)) return undefined
  const parts = [...options.hosts, ...options.clusters.map((name) => `@${name}`)]
  const operated = parts.filter((part) => !isPlain(part))
  if (operated.length > 1) return undefined
  const union = [...operated, ...parts.filter(isPlain)]
  const tagged = tags.map(([key, value]) => `&@tag:${key}:${value}`).join('')
  const start = union.length > 0 ? union.join(',') + tagged : options.all ? `@*${tagged}` : tagged.slice(1)
  return (
    start +
    options.exclude
      .flatMap(splitUnion)
      .map((part) => `!${part}`)
      .join('')
  )
}

/** The hosts that a selector names; an unknown name rejects with `not_found`. */
export async function selectHosts(
  services: { readonly hosts: Pick<Services['hosts'], 'list'> },
  selector: string,
): Promise<Host[]> {
  const found = new Map<number, Host>()
  for (const question of await questionsOf(selector)) {
    const page = await allPages((query) => services.hosts.list(query), { selector: question })
    for (const host of page.content) found.set(host.id, host)
  }
  return [...found.values()]
}

async function everyHost(services: Lookup, tag?: string): Promise<Host[]> {
  const query = tag === undefined ? {} : { tag: [tag] }
  return (await allPages((page) => services.hosts.list(page), query)).content
}

function taggedHosts(services: Lookup, tag: string): Promise<Host[]> {
  const [key, value] = splitTag(tag)
  // Only a selector reports a tag that no host has.
  if (isBare(key) && isBare(value)) return selectHosts(services, `@tag:${key}:${value}`)
  return everyHost(services, `${key}:${value}`)
}

/** Selectors whose hosts together are those of all of these: what may stand in a union is in one. */
function unionsOf(selectors: readonly string[]): string[] {
  const plain = selectors.filter(isPlain)
  return [...selectors.filter((each) => !isPlain(each)), ...(plain.length > 0 ? [plain.join(',')] : [])]
}

/** The hosts of the options, part by part, in natural order of their names. */
export async function resolveHosts(services: Lookup, options: TargetOptions): Promise<Host[]> {
  const joined = joinSelector(options)
  const found = new Map<number, Host>()
  const add = (hosts: Host[]) => {
    for (const host of hosts) found.set(host.id, host)
  }
  if (joined !== undefined && (isPlain(joined) || fitsQuestion(joined)))
    add(await selectHosts(services, joined))
  else {
    for (const selector of unionsOf(options.hosts)) add(await selectHosts(services, selector))
    for (const name of options.clusters) {
      const members = new Set((await findCluster(services, name)).hostIds)
      add((await everyHost(services)).filter((host) => members.has(host.id)))
    }
    if (options.all || options.hosts.length + options.clusters.length === 0) add(await everyHost(services))
    for (const tag of options.tags) {
      const tagged = new Set((await taggedHosts(services, tag)).map((host) => host.id))
      for (const id of found.keys()) if (!tagged.has(id)) found.delete(id)
    }
    for (const selector of unionsOf(options.exclude))
      for (const host of await selectHosts(services, selector)) found.delete(host.id)
  }
  return [...found.values()].sort((a, b) => compareNatural(a.hostname, b.hostname))
}

/** The target of a task: a selector that the server reads, else the ids that the parts come to. */
export async function resolveTarget(services: Lookup, options: TargetOptions): Promise<Target> {
  const selector = joinSelector(options)
  if (selector !== undefined && selector.length <= longestSelector) return { selector }
  const [only] = options.clusters
  const alone = options.hosts.length + options.tags.length + options.exclude.length === 0
  if (only !== undefined && options.clusters.length === 1 && alone)
    return { clusterId: (await findCluster(services, only)).id }
  return { hostIds: (await resolveHosts(services, options)).map((host) => host.id) }
}

const hostsOf = (count: number) => (count === 1 ? 'the only host' : `all ${count} hosts`)

async function emptyParts(services: Lookup, { hosts, clusters }: TargetOptions): Promise<string> {
  const parts: string[] = []
  for (const selector of hosts)
    if ((await selectHosts(services, selector)).length === 0) parts.push(`-w ${selector} matches no host`)
  for (const name of clusters)
    if ((await findCluster(services, name)).hostCount === 0) parts.push(`cluster ${name} has no hosts`)
  return parts.length === 0 ? 'there are no hosts' : parts.join(', and ')
}

/** Which part of a target leaves no hosts; undefined if some are left. */
async function emptiedBy(services: Lookup, options: TargetOptions): Promise<string | undefined> {
  const all = options.hosts.length + options.clusters.length === 0
  const narrowed = (tags: readonly string[], exclude: readonly string[]) =>
    resolveHosts(services, { ...options, all, tags, exclude })
  let left = await narrowed([], [])
  if (left.length === 0) return emptyParts(services, options)
  for (const at of options.tags.keys()) {
    const tagged = await narrowed(options.tags.slice(0, at + 1), [])
    if (tagged.length === 0) return `-t ${options.tags[at]} matches none of ${hostsOf(left.length)}`
    left = tagged
  }
  const spared = await narrowed(options.tags, options.exclude)
  if (spared.length > 0) return undefined
  return `-x ${options.exclude.join(' -x ')} excludes ${hostsOf(left.length)}`
}

/**
 * That a target has no hosts, and what left none: `not_found`, as a name or a tag that does not exist (contract §8: exit 5).
 * Undefined where it has some.
 */
export async function emptyTarget(services: Lookup, options: TargetOptions): Promise<RsmError | undefined> {
  const why = await emptiedBy(services, options)
  return why === undefined
    ? undefined
    : new RsmError('not_found', `nothing to run on: ${why}`, { hint: 'rsm hosts list' })
}
