import type { Operator } from './parse.ts'

/** What a selector can ask of a host. */
export interface SelectorHost {
  readonly id: number
  readonly hostname: string
  readonly tags: Readonly<Record<string, string>>
  readonly status: string
  /** Whether it is heard, and its agent lacks the link that it should have. */
  readonly noLink: boolean
  /** Whether what is sent to it gets there. */
  readonly reachable: boolean
  readonly os: string | null
  readonly arch: string | null
}

/** A cluster's members: ids, or what finds them (a dynamic cluster). */
export interface SelectorCluster {
  readonly name: string
  readonly hostIds: readonly number[]
  readonly selector: string | null
}

/** Where selectors look things up. Names come in lower case: they ignore case. */
export interface Directory {
  readonly hosts: readonly SelectorHost[]
  /** Of `hosts`, in their order. */
  lowerCaseNames(): readonly string[]
  host(lowerCaseName: string): SelectorHost | undefined
  hostById(id: number): SelectorHost | undefined
  cluster(lowerCaseName: string): SelectorCluster | undefined
  clusterNames(): Iterable<string>
}

/** A directory over hosts and clusters as they are now. Each index is built when it is first asked. */
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
