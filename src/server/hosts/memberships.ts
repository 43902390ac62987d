import { RsmError } from '../../core/errors.ts'
import type { Directory } from '../../core/selector/directory.ts'
import { parseSelector } from '../../core/selector/parse.ts'
import { resolveInSlices } from '../../core/selector/resolve.ts'
import type { Log } from '../../disk/log.ts'
import type { Store } from '../storage/ports/store.ts'
import type { ClusterRecord } from '../storage/records/host.ts'
import { runInSlices } from './slices.ts'

/** Milliseconds for which what scripts are told of clusters may be behind changes of status: each HELLO of a herd is one. */
const membershipLife = 1000

/** What `make` answers, made anew only when the key has changed, or when it failed. */
export function keptBy<T>(key: () => string, make: () => Promise<T>): () => Promise<T> {
  let last: { key: string; made: Promise<T> } | null = null
  return () => {
    const now = key()
    if (last?.key === now) return last.made
    const made = make()
    last = { key: now, made }
    made.catch(() => {
      if (last?.made === made) last = null
    })
    return made
  }
}

/** What a selector comes to, as long as the fleet stays as it is. */
export interface Members {
  ids: number[]
  set: ReadonlySet<number>
}
/** Which hosts are in which clusters. */
export interface Memberships {
  /** The members of a cluster whose selector this is; none where that can't be resolved any more. */
  dynamic(cluster: ClusterRecord, selector: string, known: Directory): Promise<Members>
  /** Answers, for a host, the clusters that it is in. */
  now(): Promise<(hostId: number) => ClusterRecord[]>
  /** The same, made anew at most once a second where only statuses have changed. */
  recent(): Promise<(hostId: number) => ClusterRecord[]>
}

interface Known {
  directory: () => Promise<Directory>
  /** How often each has changed. */
  changes: Readonly<Record<'hosts' | 'clusters', number>>
  log: Log
}

export function createMemberships(store: Store, { directory, changes, log }: Known): Memberships {
  const selected = new WeakMap<Directory, Map<string, Promise<Members>>>()
  /** The selectors that the log has been told of, by cluster: every list would else tell it again. */
  const unresolved = new Map<number, string>()

  /** Resolved once, whoever asks meanwhile. */
  function dynamicMembers(cluster: ClusterRecord, selector: string, known: Directory): Promise<Members> {
    const found = selected.get(known) ?? new Map<string, Promise<Members>>()
    selected.set(known, found)
    const members =
      found.get(selector) ??
      resolveOrEmpty(cluster, selector, known).then((ids) => ({ ids, set: new Set(ids) }))
    found.set(selector, members)
    return members
  }

  /**
   * A selector that was good when it was stored can fail later: the fleet outgrows its bounds, a cluster takes a name
   * that it used. One such cluster must not take every list of hosts down with it, so that it is shown without members.
   */
  async function resolveOrEmpty(
    cluster: ClusterRecord,
    selector: string,
    known: Directory,
  ): Promise<number[]> {
    try {
      const hosts = await runInSlices(resolveInSlices(parseSelector(selector), known, { strictness: 'none' }))
      unresolved.delete(cluster.id)
      return hosts.map(({ id }) => id)
    } catch (error) {
      if (!(error instanceof RsmError && error.code === 'invalid')) throw error
      const { id, name } = cluster
      if (unresolved.get(id) !== selector)
        log.warn(
          { err: error, clusterId: id, name },
          'a cluster is shown without members: its selector fails',
        )
      unresolved.set(id, selector)
      return []
    }
  }

  /** A cluster whose members are selected has none here. */
  const clustersAndMembers = keptBy(
    () => `${changes.clusters}`,
    async () => {
      const { items } = await store.query('clusters')
      return items.map((cluster) => ({ cluster, set: new Set(cluster.hostIds) }))
    },
  )

  async function membership(): Promise<(hostId: number) => ClusterRecord[]> {
    const clusters = await clustersAndMembers()
    const known = clusters.some(({ cluster }) => cluster.selector !== null) ? await directory() : null
    const sets: { cluster: ClusterRecord; set: ReadonlySet<number> }[] = []
    for (const { cluster, set } of clusters) {
      const { selector } = cluster
      const dynamic = selector !== null && known && (await dynamicMembers(cluster, selector, known))
      sets.push({ cluster, set: dynamic ? dynamic.set : set })
    }
    return (hostId) => sets.filter(({ set }) => set.has(hostId)).map(({ cluster }) => cluster)
  }

  return {
    dynamic: dynamicMembers,
    now: membership,
    recent: keptBy(
      () => `${changes.hosts} ${changes.clusters} ${Math.floor(performance.now() / membershipLife)}`,
      membership,
    ),
  }
}
