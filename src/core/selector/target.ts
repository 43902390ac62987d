import { invalid } from '../errors.ts'
import type { Group } from './group.ts'
import { createRoom } from './nodeset-pattern.ts'
import { type Operator, parseSelector, type Selector, type Term } from './parse.ts'

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
