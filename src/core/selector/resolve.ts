import { type FieldFault, invalid } from '../errors.ts'
import { unknownName, unknownTag } from '../text/nearest.ts'
import { combine, type Directory, indexTags, type SelectorCluster, type SelectorHost } from './directory.ts'
import { type Group, reachableWord } from './group.ts'
import { compareNatural } from './natural-order.ts'
import { parseSelector, type Selector, type Term } from './parse.ts'
import { hasWildcard, matchesWildcard } from './syntax.ts'

/**
 * Which names must exist. `all`: every exact name and group (contract §8). `names`: hosts and clusters, while a tag,
 * os or arch may have no hosts yet: for the selector of a dynamic cluster. `none`: nothing, to show a dynamic cluster
 * whose hosts are gone.
 */
export type Strictness = 'all' | 'names' | 'none'

interface ResolveOptions {
  /** Field of the selector in a request; default `selector`. */
  readonly field?: string
  readonly strictness?: Strictness
}

/** Most unknown names that one answer lists, each with its nearest: that lookup reads every name. */
const maxFaults = 10

/** Deepest nesting of dynamic clusters. */
const maxDepth = 16

/** Most hosts that one selector examines, over all its groups and wildcards: some tenths of a second. */
const maxSteps = 2_000_000

/** Most characters that its wildcards compare: some tenths of a second too. */
const maxComparisons = 20_000_000

/** Hosts examined before other work gets its turn: some milliseconds. */
export const stepsPerSlice = 20_000

/** Examining a host takes about as long as comparing this many characters. */
const charactersPerStep = 20

/** Work in slices: yields between two of them, with the number of hosts examined in the last. */
export type Sliced<T> = Generator<number, T>

type Attribute = 'status' | 'os' | 'arch'

/** State of one resolution; nothing outlives the call. */
class Resolution {
  readonly #directory: Directory
  /** Request field of the current term. */
  #field: string
  readonly #strictness: Strictness
  readonly #faults: FieldFault[] = []
  #unlisted = 0
  #steps = 0
  #comparisons = 0
  /** Hosts examined in this slice; a comparison counts as a fraction. */
  #slice = 0
  #everything: ReadonlySet<number> | undefined
  readonly #clusters = new Map<string, ReadonlySet<number>>()
  /** Dynamic clusters being resolved, outermost first. */
  readonly #path: string[] = []
  #tags: Map<string, Map<string, Set<number>>> | undefined

  constructor(directory: Directory, field: string, strictness: Strictness) {
    this.#directory = directory
    this.#field = field
    this.#strictness = strictness
  }

  finish(ids: ReadonlySet<number>): SelectorHost[] {
    if (this.#faults.length > 0) {
      if (this.#unlisted > 0)
        this.#faults.push({ field: this.#field, message: `and ${this.#unlisted} more that do not exist` })
      throw invalid(this.#faults)
    }
    const hosts: SelectorHost[] = []
    for (const id of ids) {
      const host = this.#directory.hostById(id)
      if (host) hosts.push(host)
    }
    return hosts.sort((a, b) => compareNatural(a.hostname, b.hostname))
  }

  *evaluate(selector: Selector): Sliced<ReadonlySet<number>> {
    let result = new Set<number>()
    const field = this.#field
    for (const term of selector.terms) {
      this.#field = term.field ?? field
      result = combine(result, term.operator, yield* this.#members(term))
      this.#field = field
      yield* this.#giveWay()
    }
    return result
  }

  *#giveWay(): Sliced<void> {
    if (this.#slice < stepsPerSlice) return
    const stepped = this.#slice
    this.#slice = 0
    yield stepped
  }

  *#members(term: Term): Sliced<ReadonlySet<number>> {
    if (term.kind === 'selector') return yield* this.evaluate(term.selector)
    const ids = new Set<number>()
    if (term.kind === 'names')
      for (const name of term.names) {
        this.#step(1)
        this.#addHost(name, ids)
        if (this.#slice >= stepsPerSlice) yield* this.#giveWay()
      }
    else if (term.kind === 'wildcards') for (const mask of term.masks) yield* this.#addMatching(mask, ids)
    else {
      const [only] = term.groups
      if (term.groups.length === 1 && only?.by === 'everything') return this.#all()
      for (const group of term.groups) {
        let members = 0
        for (const id of yield* this.#group(group)) {
          ids.add(id)
          members++
        }
        this.#step(members)
        yield* this.#giveWay()
      }
    }
    return ids
  }

  /** The whole fleet, built once for all terms. */
  #all(): ReadonlySet<number> {
    this.#step(this.#directory.hosts.length)
    this.#everything ??= new Set(this.#directory.hosts.map((host) => host.id))
    return this.#everything
  }

  /** Bounds a long selector over a large fleet, which would block the server. */
  #step(hosts: number): void {
    this.#steps += hosts
    this.#slice += hosts
    if (this.#steps > maxSteps) {
      const message = `it examines more than ${maxSteps.toLocaleString('en-US')} hosts: use fewer groups and wildcards`
      throw invalid([{ field: this.#field, message }])
    }
  }

  /** Bounds many masks over long names: few hosts, but a long time. */
  readonly #compare = (characters: number): void => {
    this.#comparisons += characters
    this.#slice += characters / charactersPerStep
    if (this.#comparisons > maxComparisons) {
      const message = `its wildcards compare more than ${maxComparisons.toLocaleString('en-US')} characters: use fewer or shorter ones`
      throw invalid([{ field: this.#field, message }])
    }
  }

  #addHost(name: string, ids: Set<number>): void {
    const host = this.#directory.host(name.toLowerCase())
    if (host) ids.add(host.id)
    else
      this.#missing('names', () =>
        unknownName(
          'host',
          name,
          this.#directory.hosts.map((known) => known.hostname),
        ),
      )
  }

  *#addMatching(mask: string, ids: Set<number>): Sliced<void> {
    const names = this.#directory.lowerCaseNames()
    for (const [index, host] of this.#directory.hosts.entries()) {
      this.#step(1)
      if (matchesWildcard(mask, names[index] ?? '', this.#compare)) ids.add(host.id)
      if (this.#slice >= stepsPerSlice) yield* this.#giveWay()
    }
  }

  *#group(group: Group): Sliced<Iterable<number>> {
    switch (group.by) {
      case 'everything':
        return this.#all()
      case 'reachable':
        return this.#reachable()
      case 'id':
        if (this.#directory.hostById(group.id)) return [group.id]
        return this.#missing('names', () => unknownName('host', `@id:${group.id}`, []))
      case 'cluster':
        return yield* this.#cluster(group.name, group.exact)
      case 'tag':
        return yield* this.#tag(group)
      case 'status':
      case 'os':
      case 'arch':
        return yield* this.#attribute(group.by, group.value)
    }
  }

  #reachable(): Iterable<number> {
    const { hosts } = this.#directory
    this.#step(hosts.length)
    // A cluster from before the word was reserved: its members are not the hosts that `@reachable` selects now.
    if (this.#directory.cluster(reachableWord))
      return this.#missing(
        'names',
        () => '@reachable is a reserved word now: rename the cluster with that name',
      )
    return hosts.filter((host) => host.reachable).map(({ id }) => id)
  }

  *#attribute(by: Attribute, value: string): Sliced<Iterable<number>> {
    const wild = hasWildcard(value)
    const ids: number[] = []
    for (const host of this.#directory.hosts) {
      this.#step(1)
      const held = (by === 'status' ? (host.noLink ? 'NO_LINK' : host.status) : host[by])?.toLowerCase()
      if (held !== undefined && (wild ? matchesWildcard(value, held, this.#compare) : held === value))
        ids.push(host.id)
      if (this.#slice >= stepsPerSlice) yield* this.#giveWay()
    }
    // A status exists even if no host has it; an os or arch exists only if a host reports it.
    if (ids.length > 0 || wild || by === 'status') return ids
    return this.#missing('all', () => {
      const known = this.#directory.hosts.flatMap((host) => (host[by] === null ? [] : [`@${by}:${host[by]}`]))
      return unknownName('group', `@${by}:${value}`, known)
    })
  }

  *#tag({ key, value, exact }: Group & { by: 'tag' }): Sliced<Iterable<number>> {
    this.#tags ??= indexTags(this.#directory.hosts)
    const values = this.#tags.get(key)
    if (exact !== true && hasWildcard(value)) {
      const ids: number[] = []
      for (const [held, carriers] of values ?? []) {
        this.#step(1)
        if (matchesWildcard(value, held, this.#compare)) for (const id of carriers) ids.push(id)
        if (this.#slice >= stepsPerSlice) yield* this.#giveWay()
      }
      return ids
    }
    const carriers = values?.get(value)
    if (carriers) return carriers
    const tags = this.#tags
    return this.#missing('all', () => {
      const known = values ? [[key, values] as const] : tags
      const tagged = [...known].flatMap(([tag, held]) => [...held.keys()].map((text) => `${tag}=${text}`))
      return unknownTag(`${key}=${value}`, tagged)
    })
  }

  *#cluster(name: string, exact = false): Sliced<Iterable<number>> {
    if (!exact && hasWildcard(name)) {
      const ids = new Set<number>()
      for (const known of this.#directory.clusterNames()) {
        this.#step(1)
        if (this.#slice >= stepsPerSlice) yield* this.#giveWay()
        if (!matchesWildcard(name, known.toLowerCase(), this.#compare)) continue
        let members = 0
        for (const id of yield* this.#cluster(known.toLowerCase())) {
          ids.add(id)
          members++
        }
        this.#step(members)
      }
      return ids
    }
    const known = this.#clusters.get(name)
    if (known) return known
    const cluster = this.#directory.cluster(name)
    if (!cluster)
      return this.#missing('names', () => unknownName('cluster', name, this.#directory.clusterNames()))
    const members =
      cluster.selector === null ? new Set(cluster.hostIds) : yield* this.#dynamic(cluster, cluster.selector)
    this.#clusters.set(name, members)
    return members
  }

  *#dynamic(cluster: SelectorCluster, selector: string): Sliced<ReadonlySet<number>> {
    const loop = this.#path.includes(cluster.name)
    if (loop || this.#path.length >= maxDepth) {
      const path = [...this.#path, cluster.name].join(' → ')
      const message = loop
        ? `cluster ${cluster.name} contains itself: ${path}`
        : `clusters are nested more than ${maxDepth} deep: ${path}`
      throw invalid([{ field: this.#field, message }])
    }
    this.#path.push(cluster.name)
    const members = yield* this.evaluate(parseSelector(selector, this.#field))
    this.#path.pop()
    return members
  }

  /** Records a missing name if that is a fault; returns no hosts. */
  #missing(least: 'all' | 'names', message: () => string): number[] {
    const inCluster = this.#path.at(-1)
    const strictness = this.#strictness === 'all' && inCluster !== undefined ? 'names' : this.#strictness
    if (strictness === 'none' || (least === 'all' && strictness === 'names')) return []
    if (this.#faults.length >= maxFaults) {
      this.#unlisted++
      return []
    }
    const within = inCluster === undefined ? '' : ` (in the selector of cluster ${inCluster})`
    this.#faults.push({ field: this.#field, message: message() + within })
    // Finding the nearest name read every name.
    this.#slice += stepsPerSlice
    return []
  }
}

/**
 * Resolves a selector to hosts in natural order of their names (contract §8). A slice has `stepsPerSlice` hosts, or
 * the whole fleet if that is larger. Throws `invalid` with a fault for every exact name and group that does not
 * exist, each with the nearest name. Wildcards may match nothing.
 */
export function* resolveInSlices(
  selector: Selector,
  directory: Directory,
  { field = 'selector', strictness = 'all' }: ResolveOptions = {},
): Sliced<SelectorHost[]> {
  const resolution = new Resolution(directory, field, strictness)
  return resolution.finish(yield* resolution.evaluate(selector))
}
