import type { Operator } from './parse.ts'

export interface SelectorHost {
  readonly id: number
  readonly hostname: string
  readonly tags: Readonly<Record<string, string>>
  readonly status: string
  /** Whether it sends heartbeats but lacks the link that it should have. */
  readonly noLink: boolean
  readonly reachable: boolean
  readonly os: string | null
  readonly arch: string | null
}

/** Members of a cluster: ids, or a selector (a dynamic cluster). */
export interface SelectorCluster {
  readonly name: string
  readonly hostIds: readonly number[]
  readonly selector: string | null
}

/** Lookups for selectors. Names are passed in lower case, because they ignore case. */
export interface Directory {
  readonly hosts: readonly SelectorHost[]
  /** Lower-case names of `hosts`, in the same order. */
  lowerCaseNames(): readonly string[]
  host(lowerCaseName: string): SelectorHost | undefined
  hostById(id: number): SelectorHost | undefined
  cluster(lowerCaseName: string): SelectorCluster | undefined
  clusterNames(): Iterable<string>
}

/** Directory of the current hosts and clusters. Builds each index on first use. */
export function createDirectory(
  hosts: readonly SelectorHost[],
  clusters: readonly SelectorCluster[],
): Directory {
  let lowerCaseNames: readonly string[] | undefined
  let byName: Map<string, SelectorHost> | undefined
  let byId: Map<number, SelectorHost> | undefined
  let clusterByName: Map<string, SelectorCluster> | undefined
  return {
    hosts,
    lowerCaseNames() {
      lowerCaseNames ??= hosts.map((host) => host.hostname.toLowerCase())
      return lowerCaseNames
    },
    host(name) {
      byName ??= new Map(hosts.map((host) => [host.hostname.toLowerCase(), host]))
      return byName.get(name)
    },
    hostById(id) {
      byId ??= new Map(hosts.map((host) => [host.id, host]))
      return byId.get(id)
    },
    cluster(name) {
      clusterByName ??= new Map(clusters.map((cluster) => [cluster.name.toLowerCase(), cluster]))
      return clusterByName.get(name)
    },
    *clusterNames() {
      for (const cluster of clusters) yield cluster.name
    },
  }
}

/** Key → value → ids of hosts with that tag; keys and values in lower case. */
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

/** Changes `left` in place if it can, so that the cost is that of `right`. */
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
