import { statusWords } from '../../core/hosts/host-status.ts'
import type { Kind, Manifest } from './kinds.ts'
import type { Listed, Lookup, Named } from './names-cache.ts'
import type { Wanted } from './wanted.ts'

/** One completion of the word under the cursor; `word` is the whole word, unquoted. */
export interface Candidate {
  readonly word: string
  /** Text to display: the word without the part before its value. */
  readonly shown: string
  readonly about: string
  /** Whether the word is incomplete, like `@status:`. */
  readonly isOpen: boolean
}

export interface Answer {
  readonly candidates: readonly Candidate[]
  /** File names that the shell adds itself; `lead` is the part of the word before the name. */
  readonly files?: { readonly only: 'files' | 'directories'; readonly lead: string }
  /** Ids mean nothing to people, so every shell shows their descriptions. */
  readonly isOfIds?: boolean
  readonly isOrdered?: boolean
}

interface Offer {
  readonly name: string
  readonly about?: string
  readonly isOpen?: boolean
}

/** How a selector (contract §8) can continue at its end. */
type SelectorEnd =
  /** Within brackets or after a wildcard. */
  | { readonly is: 'nothing' }
  | { readonly is: 'host'; readonly lead: string }
  /** `@…` up to its first colon. */
  | { readonly is: 'group'; readonly lead: string }
  /** After `@key:`; `key` is in lower case, e.g. `tag:role` for `@tag:role:`. */
  | { readonly is: 'member'; readonly lead: string; readonly key: string }

const none: Answer = { candidates: [] }

/** Fast check that matches almost every name, because Unicode classes take milliseconds to compile. */
export const plain = /^[ -~]*$/

const operators = ',!&^'

const lists: Partial<Record<Kind, Listed | 'contexts'>> = {
  host: 'hosts',
  cluster: 'clusters',
  script: 'scripts',
  'script or file': 'scripts',
  schedule: 'schedules',
  upload: 'uploads',
  task: 'tasks',
  user: 'users',
  token: 'tokens',
  enrollment: 'enrollments',
  webhook: 'webhooks',
  recording: 'recordings',
  'recording or file': 'recordings',
  session: 'sessions',
  context: 'contexts',
}
const ofIds: ReadonlySet<Kind> = new Set<Kind>([
  'upload',
  'task',
  'recording',
  'recording or file',
  'session',
])

const fixed: Partial<Record<Kind, readonly Offer[]>> = {
  strategy: [
    { name: 'parallel', about: 'all hosts at once' },
    { name: 'sequential', about: 'one after the other, up to the first failure' },
    { name: 'rolling', about: 'batch by batch' },
  ],
  limit: ['memory=', 'processes=', 'cpu='].map((name) => ({ name, isOpen: true })),
  method: ['GET', 'POST', 'PATCH', 'DELETE'].map((name) => ({ name })),
}

const statuses: readonly Offer[] = statusWords.map((name) => ({ name }))

const reserved = ['status:', 'os:', 'arch:', 'id:', 'tag:']

/** Completions of the word under the cursor; `topic` returns the description of a topic. */
export async function candidatesFor(
  wanted: Wanted,
  current: string,
  manifest: Manifest,
  lookup: Lookup,
  topic: (id: string) => string = () => '',
): Promise<Answer> {
  switch (wanted.is) {
    case 'nothing':
      return none
    case 'command':
      return { candidates: fitting(commandOffers(manifest, wanted.words, topic), '', current) }
    case 'option':
      return { candidates: fitting(optionOffers(wanted), '', current) }
    case 'value': {
      const { of, lead } = wanted
      if (typeof of === 'string') return values(of, lead, current, lookup)
      return {
        candidates: fitting(
          of.map((name) => ({ name })),
          lead,
          current,
        ),
        isOrdered: true,
      }
    }
  }
}

function commandOffers(
  manifest: Manifest,
  words: readonly string[],
  about: (topic: string) => string,
): Offer[] {
  const named = words[0] === 'help' ? words.slice(1) : words
  const start = named.map((word) => `${word}:`).join('')
  const offers = new Map<string, Offer>()
  for (const [id, command] of Object.entries(manifest.commands)) {
    if (!id.startsWith(start) || command.hidden === true) continue
    const [name = '', ...more] = id.slice(start.length).split(':')
    if (more.length === 0) offers.set(name, { name, about: command.summary ?? '' })
    else if (!offers.has(name)) offers.set(name, { name, about: about(start + name) })
  }
  if (words.length === 0) offers.set('help', { name: 'help', about: 'Show what a command does' })
  if (words[0] === 'help' && words.length === 1)
    offers.set('flags', { name: 'flags', about: 'Show the global flags' })
  return [...offers.values()]
}

function optionOffers({ command, given }: Extract<Wanted, { is: 'option' }>): Offer[] {
  const excluded = new Set(
    Object.values(command.flags).flatMap((flag) => (given.has(flag.name) ? (flag.exclusive ?? []) : [])),
  )
  const offers = Object.values(command.flags)
    .filter(
      (flag) =>
        flag.hidden !== true && (flag.multiple === true || !given.has(flag.name)) && !excluded.has(flag.name),
    )
    .sort((a, b) => Number(a.helpGroup === 'GLOBAL') - Number(b.helpGroup === 'GLOBAL'))
    .map(({ name, char, description = '' }) => ({
      name: `--${name}`,
      about: char === undefined ? description : `-${char}, ${description}`,
    }))
  const version = { name: '--version', about: 'Show the version' }
  return [...offers, { name: '--help', about: 'Show what it does' }, ...(command.id === '' ? [version] : [])]
}

async function values(kind: Kind, lead: string, current: string, lookup: Lookup): Promise<Answer> {
  const typed = current.slice(lead.length)
  if (kind === 'file' || kind === 'directory')
    return { candidates: [], files: { only: kind === 'file' ? 'files' : 'directories', lead } }
  if (kind === 'selector' || kind === 'tag') {
    const found = await (kind === 'selector' ? selectorOffers : tagOffers)(typed, lookup)
    const candidates = fitting(found.offers, lead + found.lead, current)
    const [only] = candidates
    // Completes past a lone `@role:`, because it is incomplete and bash would close its quotes.
    const next =
      only?.isOpen === true && candidates.length === 1 && only.word !== current
        ? await values(kind, lead, only.word, lookup)
        : undefined
    return next !== undefined && next.candidates.length > 0 ? next : { candidates, isOrdered: true }
  }
  if (kind === 'format') {
    const { formatNames } = await import('../output/formats.ts')
    const at = typed.indexOf('=')
    if (at !== -1) return { candidates: [], files: { only: 'files', lead: lead + typed.slice(0, at + 1) } }
    const offers = formatNames.map((name) => ({ name, about: `or ${name}=FILE` }))
    return { candidates: fitting(offers, lead, current), isOrdered: true }
  }
  if (kind === 'tag key')
    return { candidates: fitting(keysOf(tagsOf(await lookup('groups')), ''), lead, current) }
  const list = lists[kind]
  const known = list === undefined ? (fixed[kind] ?? []) : await lookup(list)
  const isLatestOffered = kind === 'task' && known.length > 1
  const offers = isLatestOffered ? [{ name: 'latest', about: 'your newest' }, ...known] : known
  const candidates = fitting(offers, lead, current)
  if (candidates.length === 0 && kind.endsWith(' or file'))
    return { candidates, files: { only: 'files', lead } }
  return { candidates, isOfIds: ofIds.has(kind), isOrdered: true }
}

async function selectorOffers(
  current: string,
  lookup: Lookup,
): Promise<{ offers: readonly Offer[]; lead: string }> {
  const end = selectorEnd(current)
  switch (end.is) {
    case 'nothing':
      return { offers: [], lead: current }
    case 'host':
      return { offers: await lookup('hosts'), lead: end.lead }
    case 'group': {
      const [clusters, groups] = await Promise.all([lookup('clusters'), lookup('groups')])
      const offers: Offer[] = [
        ...clusters.map(({ name, about }) => ({
          name: `@${name}`,
          about: about === '' ? 'cluster' : `cluster, ${about}`,
        })),
        ...keysOf(tagsOf(groups), ':')
          .filter(({ name }) => !reserved.includes(name.toLowerCase()))
          .map((offer) => ({ ...offer, name: `@${offer.name}` })),
        { name: '@*', about: 'every host' },
        { name: '@reachable', about: 'hosts that scripts can reach' },
        ...reserved.map((key) => ({ name: `@${key}`, about: 'group', isOpen: true })),
      ]
      return { offers, lead: end.lead }
    }
    case 'member': {
      if (end.key === 'status') return { offers: statuses, lead: end.lead }
      const groups = await lookup('groups')
      if (end.key === 'tag') return { offers: keysOf(tagsOf(groups), ':'), lead: end.lead }
      const isNoTag = end.key === 'os' || end.key === 'arch' || end.key.startsWith('tag:')
      const values = under(groups, isNoTag ? `${end.key}:` : `tag:${end.key}:`)
      // A comma or star in a value would be read as an operator and select other hosts.
      return { offers: values.filter(({ name }) => !/[,!&^*?[\]]/.test(name)), lead: end.lead }
    }
  }
}

/** Splits a selector before its last name; `lead` is the part before it. */
function selectorEnd(text: string): SelectorEnd {
  let depth = 0
  let start = 0
  for (let at = 0; at < text.length; at++) {
    const sign = text.charAt(at)
    if (sign === '[') depth++
    else if (sign === ']') depth--
    else if (depth === 0 && operators.includes(sign)) start = at + 1
  }
  while (text[start] === ' ') start++
  const name = text.slice(start)
  if (/[[\]*?]/.test(name)) return { is: 'nothing' }
  if (!name.startsWith('@')) return { is: 'host', lead: text.slice(0, start) }
  const [, key, tag] = /^@(tag:([^:]*)|[^:]*):/i.exec(name) ?? []
  if (key === undefined) return { is: 'group', lead: text.slice(0, start) }
  const end = start + key.length + 2
  return {
    is: 'member',
    lead: text.slice(0, end),
    key: tag === undefined ? key.toLowerCase() : `tag:${tag.toLowerCase()}`,
  }
}

async function tagOffers(typed: string, lookup: Lookup): Promise<{ offers: readonly Offer[]; lead: string }> {
  const groups = await lookup('groups')
  const at = typed.indexOf('=')
  if (at === -1) return { offers: keysOf(tagsOf(groups), '='), lead: '' }
  return { offers: under(groups, `tag:${typed.slice(0, at).toLowerCase()}:`), lead: typed.slice(0, at + 1) }
}

/** Tags among the groups, as `KEY:VALUE`, without `os:` and `arch:`. */
const tagsOf = (groups: readonly Named[]) =>
  groups.flatMap(({ name, about }) => (name.startsWith('tag:') ? [{ name: name.slice(4), about }] : []))

function keysOf(tags: readonly Named[], end: string): Offer[] {
  const keys = new Set(tags.map(({ name }) => name.slice(0, name.indexOf(':'))))
  return [...keys].map((key) => ({ name: key + end, about: end === '' ? '' : 'tag', isOpen: end !== '' }))
}

const under = (groups: readonly Named[], start: string): Named[] =>
  groups.flatMap(({ name, about }) =>
    name.toLowerCase().startsWith(start) ? [{ name: name.slice(start.length), about }] : [],
  )

function fitting(offers: Iterable<Offer>, lead: string, current: string): Candidate[] {
  const typed = current.slice(lead.length).toLowerCase()
  const candidates: Candidate[] = []
  for (const { name, about = '', isOpen = false } of offers)
    if (name.toLowerCase().startsWith(typed) && isPrintable(name))
      candidates.push({ word: lead + name, shown: name, about, isOpen })
  return candidates
}

/** False for control characters, because they could break the line or forge another one. */
const isPrintable = (text: string) => plain.test(text) || !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text)
