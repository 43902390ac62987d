import type { SelectorHost } from './directory.ts'
import type { Operator } from './parse.ts'

/** Key → value → the hosts that carry it, keys and values in lower case. */
export function indexTags(hosts: readonly SelectorHost[]): Map<string, Map<string, Set<number>>> {
  const index = new Map<string, Map<string, Set<number>>>()
  for (const host of hosts)
    for (const [key, value] of Object.entries(host.tags)) {
      const lowerKey = key.toLowerCase()
      let values = index.get(lowerKey)
      if (!values) index.set(lowerKey, (values = new Map<string, Set<number>>()))
      const lowerValue = value.toLowerCase()
      const carriers = values.get(lowerValue)
      if (carriers) carriers.add(host.id)
      else values.set(lowerValue, new Set([host.id]))
    }
  return index
}

/** Changes `left` where it can: the cost is that of `right`. */
export function combine(left: Set<number>, operator: Operator, right: ReadonlySet<number>): Set<number> {
  switch (operator) {
    case ',':
      for (const id of right) left.add(id)
      return left
    case '!':
      for (const id of right) left.delete(id)
      return left
    case '&':
      return new Set([...right].filter((id) => left.has(id)))
    case '^':
      for (const id of right) if (!left.delete(id)) left.add(id)
      return left
  }
}
