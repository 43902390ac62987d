import { invalid } from '../errors.ts'
import { shortened } from '../text/pieces.ts'
import type { Directory } from './directory.ts'
import type { Group } from './group.ts'
import { createRoom } from './nodeset-pattern.ts'
import { type Operator, parseSelector, type Selector, type Term } from './parse.ts'
import { resolveInSlices, type Sliced } from './resolve.ts'

/** A target (contract §4): `hosts` and `exclude` are selectors, `tags` are `KEY=VALUE` or `key:value`. */
export interface NamedHosts {
  readonly hosts?: readonly string[]
  readonly clusters?: readonly string[]
  readonly tags?: readonly string[]
  readonly exclude?: readonly string[]
  readonly all?: boolean
}

/** Characters of all selectors of a target: the names of 10,000 hosts. */
const maxText = 524_288

const ofGroup = (group: Group): Term => ({ operator: ',', kind: 'groups', groups: [group] })

const ofCluster = (name: string): Term => ofGroup({ by: 'cluster', name: name.toLowerCase(), exact: true })

function ofTag(text: string, field: string): Term {
  const at = text.search(/[=:]/)
  if (at < 1) throw invalid([{ field, message: `must be KEY=VALUE, not ${text}` }])
  const [key, value] = [text.slice(0, at), text.slice(at + 1)]
  return ofGroup({ by: 'tag', key: key.toLowerCase(), value: value.toLowerCase(), exact: true })
}

/**
 * Parses a target into one selector: the union of hosts and clusters, or every host, narrowed by each tag, minus
 * exclusions. Each term has the field that it comes from, below `field`. Throws `invalid` like `parseSelector`.
 */
export function parseTarget(target: NamedHosts, field: string): Selector {
  const { hosts = [], clusters = [], tags = [], exclude = [], all = false } = target
  if (all && hosts.length + clusters.length > 0)
    throw invalid([{ field: `${field}.all`, message: 'selects every host: leave out hosts and clusters' }])
  if ([...hosts, ...exclude].reduce((length, text) => length + text.length, 0) > maxText)
    throw invalid([
      { field, message: `its selectors have more than ${maxText.toLocaleString('en-US')} characters` },
    ])
  const room = createRoom()
  function ofSelector(text: string, place: string): Term {
    const selector = parseSelector(text, place, room)
    const [only, second] = selector.terms
    return only && !second ? only : { operator: ',', kind: 'selector', selector }
  }
  const termsOf = (
    part: keyof NamedHosts,
    texts: readonly string[],
    operator: Operator,
    read: (text: string, field: string) => Term,
  ) =>
    texts.map((text, at): Term => {
      const place = `${field}.${part}[${at}]`
      return { ...read(text, place), operator, field: place }
    })
  const named = [
    ...termsOf('hosts', hosts, ',', ofSelector),
    ...termsOf('clusters', clusters, ',', ofCluster),
  ]
  const terms = [
    ...(named.length > 0 ? named : [ofGroup({ by: 'everything' })]),
    ...termsOf('tags', tags, '&', ofTag),
    ...termsOf('exclude', exclude, '!', ofSelector),
  ]
  return { text: '', terms }
}

/** Each step is a full resolution, too expensive for a longer selector. */
const mostTerms = 16
const mostWords = 3
/** Characters of a selector that the answer quotes. */
const longestShown = 100

const countTerms = (terms: readonly Term[]): number =>
  terms.reduce((count, term) => count + (term.kind === 'selector' ? term.selector.terms.length : 1), 0)

function groupText(group: Group): string {
  switch (group.by) {
    case 'everything':
      return '@*'
    case 'reachable':
      return '@reachable'
    case 'cluster':
      return `@${group.name}`
    case 'tag':
      return `@${group.key}:${group.value}`
    case 'id':
      return `@id:${group.id}`
    case 'status':
    case 'os':
    case 'arch':
      return `@${group.by}:${group.value}`
  }
}

function words(all: readonly string[]): string {
  const more = all.length - mostWords
  return all.slice(0, mostWords).join(',') + (more > 0 ? ` and ${more} more` : '')
}

function textOf(term: Term): string {
  if (term.kind === 'names') return words(term.names)
  if (term.kind === 'selector') return shortened(term.selector.text, longestShown)
  return words(term.kind === 'wildcards' ? term.masks : term.groups.map(groupText))
}

function emptiness(term: Term, directory: Directory): string {
  if (term.kind === 'selector') return `no host is in ${textOf(term)}`
  if (term.kind !== 'groups') return `nothing matches ${textOf(term)}`
  const [group] = term.groups
  if (group?.by === 'everything') return 'there are no hosts yet'
  if (term.groups.length > 1 || group?.by !== 'cluster') return `no host is in ${textOf(term)}`
  return `cluster ${directory.cluster(group.name)?.name ?? group.name} has no hosts`
}

/** Why a selector matches no host although all its names exist, phrased to follow that; null if unknown. */
export function* whyEmpty({ text, terms }: Selector, directory: Directory): Sliced<string | null> {
  if (countTerms(terms) > mostTerms) return null
  const counts: number[] = []
  for (const at of terms.keys()) {
    const first = { text, terms: terms.slice(0, at + 1) }
    counts.push((yield* resolveInSlices(first, directory, { strictness: 'none' })).length)
  }
  const last = counts.findLastIndex((count) => count > 0)
  const added = terms.filter(({ operator }) => operator === ',')
  if (last < 0) return added.map((term) => emptiness(term, directory)).join('; ')
  const emptied = terms[last + 1]
  const hosts = `${counts[last]} ${counts[last] === 1 ? 'host' : 'hosts'}`
  if (emptied?.operator === '!') return `excluding ${textOf(emptied)} leaves none of ${hosts}`
  if (emptied?.operator === '&') return `none of ${hosts} is in ${textOf(emptied)}`
  return null
}
