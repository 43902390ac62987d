import { RsmError } from '../../core/errors.ts'
import type { Directory } from '../../core/selector/directory.ts'
import { parseSelector } from '../../core/selector/parse.ts'
import { resolveInSlices } from '../../core/selector/resolve.ts'
import type { Log } from '../../disk/log.ts'
import type { Store } from '../storage/ports/store.ts'
import type { ClusterRecord } from '../storage/records/host.ts'
import { runInSlices } from './slices.ts'

/** Milliseconds by which cluster facts for scripts may lag behind status changes, because a reconnecting fleet sends many. */
const membershipLife = 1000

/** Caches the result of `make` until the key changes; does not cache failures. */
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

/** Hosts that a selector matches, valid while the fleet is unchanged. */
export interface Members {
  ids: number[]
  set: ReadonlySet<number>
}
export interface Memberships {
  /** Members of a dynamic cluster; empty if its selector can no longer be resolved. */
  dynamic(cluster: ClusterRecord, selector: string, known: Directory): Promise<Members>
  /** Returns a function from a host id to the host's clusters. */
  now(): Promise<(hostId: number) => ClusterRecord[]>
  /** Like `now`, but recomputed at most once a second if only statuses change. */
  recent(): Promise<(hostId: number) => ClusterRecord[]>
}

interface Known {
  directory: () => Promise<Directory>
  changes: Readonly<Record<'hosts' | 'clusters', number>>
  log: Log
}

export function createMemberships(store: Store, { directory, changes, log }: Known): Memberships {
  const selected = new WeakMap<Directory, Map<string, Promise<Members>>>()
  /** Selectors already logged as failing, by cluster: every list would log them again. */
  const unresolved = new Map<number, string>()

  /** Resolves each selector once per directory, also for concurrent callers. */
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
   * A stored selector can fail later: the fleet outgrows its limits, or a cluster takes a name that it uses. Such a
   * cluster must not make every list of hosts fail, so it is shown without members.
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

  /** Sets of static members; empty for dynamic clusters. */
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
