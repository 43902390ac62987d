import { statusWords } from '../hosts/host-status.ts'
import { unknownName } from '../text/nearest.ts'
import { hasWildcard, type Place, syntaxError } from './syntax.ts'

/** Meaning of `@…` (contract §8), in lower case because groups ignore case. Wildcards are literal if `exact`. */
export type Group =
  | { readonly by: 'everything' | 'reachable' }
  | { readonly by: 'cluster'; readonly name: string; readonly exact?: true }
  | { readonly by: 'tag'; readonly key: string; readonly value: string; readonly exact?: true }
  | { readonly by: 'status' | 'os' | 'arch'; readonly value: string }
  | { readonly by: 'id'; readonly id: number }

/** A reserved word (contract §8): no cluster may have this name. */
export const reachableWord = 'reachable'

const unknownStatus = (value: string) =>
  `${unknownName('status', value, statusWords)}; there are ${statusWords.join(', ')}`
const clusterName = /^[A-Za-z0-9._ *?-]+$/
const tagKey = /^[A-Za-z0-9][A-Za-z0-9_./-]{0,62}$/
const hostId = /^[1-9]\d{0,14}$/

function tagGroup(key: string, value: string, place: Place): Group {
  if (!tagKey.test(key)) throw syntaxError(`"${key}" is not a tag key`, place)
  return { by: 'tag', key: key.toLowerCase(), value: value.toLowerCase() }
}

/** `name` is the text after the `@`, brackets expanded. */
export function parseGroup(name: string, place: Place): Group {
  if (name === '*') return { by: 'everything' }
  const colon = name.indexOf(':')
  if (colon < 0) {
    if (name.toLowerCase() === reachableWord) return { by: 'reachable' }
    if (!clusterName.test(name)) throw syntaxError(`"@${name}" is not a cluster name`, place)
    return { by: 'cluster', name: name.toLowerCase() }
  }
  const key = name.slice(0, colon).trim()
  const value = name.slice(colon + 1).trim()
  switch (key.toLowerCase()) {
    case 'status':
      if (!hasWildcard(value) && !statusWords.includes(value.toUpperCase()))
        throw syntaxError(unknownStatus(value), place)
      return { by: 'status', value: value.toLowerCase() }
    case reachableWord:
      throw syntaxError(`write @reachable, or @tag:reachable:${value} for a tag`, place)
    case 'os':
      return { by: 'os', value: value.toLowerCase() }
    case 'arch':
      return { by: 'arch', value: value.toLowerCase() }
    case 'id':
      if (!hostId.test(value)) throw syntaxError(`"${value}" is not a host id`, place)
      return { by: 'id', id: Number(value) }
    case 'tag': {
      const second = value.indexOf(':')
      if (second < 0) throw syntaxError('write @tag:KEY:VALUE', place)
      return tagGroup(value.slice(0, second).trim(), value.slice(second + 1).trim(), place)
    }
    default:
      return tagGroup(key, value, place)
  }
}
