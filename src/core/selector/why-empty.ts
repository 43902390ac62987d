import { shortened } from '../text/pieces.ts'
import type { Directory } from './directory.ts'
import type { Group } from './group.ts'
import type { Selector, Term } from './parse.ts'
import { resolveInSlices, type Sliced } from './resolve.ts'

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
