import { setImmediate } from 'node:timers/promises'
import { RsmError } from '../../core/errors.ts'
import type { HostStatus } from '../../core/hosts/host.ts'
import { Mutex } from '../../core/mutex.ts'
import type { Cluster } from '../../core/protocol/http/clusters.ts'
import { BeatFacts, HelloFacts, type Host } from '../../core/protocol/http/hosts.ts'
import type { KnownHost } from '../../core/scripts/params.ts'
import { createDirectory, type Directory } from '../../core/selector/directory.ts'
import { parseSelector, type Selector } from '../../core/selector/parse.ts'
import { resolveInSlices, type Sliced } from '../../core/selector/resolve.ts'
import type { Log } from '../../disk/log.ts'
import type { PresenceView, Views } from '../storage/ports/presence.ts'
import type { Store } from '../storage/ports/store.ts'
import type { ClusterRecord, HostRecord } from '../storage/records/host.ts'
import { pick } from '../storage/records/records.ts'
import { fieldsOf } from './reported.ts'

export interface Fleet {
  /** Whether agents may still be reconnecting, as after a server start. */
  readonly isReturning: boolean
  directory(): Promise<Directory>
  /**
   * Ids of the hosts that a selector matches, in natural order of names; throws `invalid` at `field`. `awaits`:
   * agents that may be reconnecting count as linked, because their tasks wait for them.
   */
  select(selector: Selector, field: string, awaits?: boolean): Promise<number[]>
  /** Current members of a cluster, for display; empty if its selector can no longer be resolved. */
  members(cluster: ClusterRecord): Promise<number[]>
  /** Current members to run on, `awaits` as in `select`. Throws `invalid` if the selector names missing hosts. */
  targets(cluster: ClusterRecord, field: string, awaits?: boolean): Promise<number[]>
  /** Facts about these hosts for scripts; omits deleted hosts. */
  readonly knownHosts: (hostIds: readonly number[]) => Promise<KnownHost[]>
  hostsToApi(records: readonly HostRecord[]): Promise<Host[]>
  clustersToApi(records: readonly ClusterRecord[]): Promise<Cluster[]>
  countByStatus(): Promise<Record<HostStatus | 'NO_LINK', number>>
}

export function createFleet(store: Store, presence: Views, log: Log): Fleet {
  const changes = { hosts: 0, clusters: 0 }
  store.watch('hosts', () => void changes.hosts++)
  store.watch('clusters', () => void changes.clusters++)

  /** Waits for changes that other servers acknowledged, if the store is reachable. */
  async function catchUp(): Promise<void> {
    try {
      await store.refresh()
    } catch (error) {
      if (!(error instanceof RsmError && error.code === 'unavailable')) throw error
    }
  }

  const version = () => `${changes.hosts} ${changes.clusters} ${presence.revision}`
  const known = keptBy(version, () => readDirectory(false))
  const awaited = keptBy(version, () => readDirectory(true))
  async function directory(awaits = false): Promise<Directory> {
    await catchUp()
    return awaits && presence.isReturning ? awaited() : known()
  }
  async function readDirectory(allLinked: boolean): Promise<Directory> {
    const [hosts, clusters] = await Promise.all([store.query('hosts'), store.query('clusters')])
    const standings = await presence.standings(hosts.items.map(({ id }) => id))
    return createDirectory(
      hosts.items.map(({ id, hostname, tags, systemInfo }, index) => ({
        id,
        hostname,
        tags,
        ...(standings[index] ?? { status: 'OFFLINE', reachable: false, noLink: false }),
        ...(allLinked && { noLink: false }),
        os: systemInfo?.os ?? null,
        arch: systemInfo?.arch ?? null,
      })),
      clusters.items,
    )
  }

  const memberships = createMemberships(store, { directory: known, changes, log })

  async function members(cluster: ClusterRecord): Promise<number[]> {
    return cluster.selector === null
      ? cluster.hostIds
      : (await memberships.dynamic(cluster, cluster.selector, await directory())).ids
  }

  return {
    get isReturning() {
      return presence.isReturning
    },
    directory: () => directory(),
    members,
    async targets(cluster, field, awaits) {
      if (cluster.selector === null) return cluster.hostIds
      const selector = parseSelector(cluster.selector, field)
      const hosts = await runInSlices(
        resolveInSlices(selector, await directory(awaits), { field, strictness: 'names' }),
      )
      return hosts.map(({ id }) => id)
    },
    async select(selector, field, awaits) {
      const hosts = await runInSlices(resolveInSlices(selector, await directory(awaits), { field }))
      return hosts.map(({ id }) => id)
    },
    async knownHosts(hostIds) {
      const clustersOf = await memberships.recent()
      const records = await store.getMany('hosts', hostIds)
      return records.flatMap((record) => {
        if (!record) return []
        const { id, hostname, tags } = record
        return [{ id, hostname, tags, clusters: clustersOf(id).map(({ name }) => name) }]
      })
    },
    async hostsToApi(records) {
      await catchUp()
      const clustersOf = await memberships.now()
      const views = await presence.views(records.map(({ id }) => id))
      return records.map((record, index) =>
        hostToApi(
          record,
          views[index],
          clustersOf(record.id).map(({ id }) => id),
        ),
      )
    },
    async countByStatus() {
      const { items: hosts } = await store.query('hosts')
      const counts = { ONLINE: 0, WARNING: 0, NO_LINK: 0, OFFLINE: 0 }
      for (const { status, noLink } of await presence.standings(hosts.map(({ id }) => id)))
        counts[noLink ? 'NO_LINK' : status]++
      return counts
    },
    async clustersToApi(records) {
      const known = records.some(({ selector }) => selector !== null) ? await directory() : null
      const dtos: Cluster[] = []
      for (const record of records) {
        const { selector } = record
        const hostIds =
          selector !== null && known
            ? (await memberships.dynamic(record, selector, known)).ids
            : record.hostIds
        dtos.push({
          ...pick(record, 'id', 'name', 'description'),
          hostIds,
          selector,
          hostCount: hostIds.length,
          ...pick(record, 'createdAt', 'updatedAt'),
        })
      }
      return dtos
    },
  }
}

/** Called for every host of every list. Avoids spreads after the first field of a literal, which take 2 µs in V8. */
function hostToApi(record: HostRecord, view: PresenceView | undefined, clusterIds: number[]): Host {
  return {
    id: record.id,
    hostname: record.hostname,
    ip: record.ip,
    sshPort: record.sshPort,
    authType: record.authType,
    username: record.username,
    hostKey: record.hostKey ?? null,
    tags: record.tags,
    status: view?.status ?? 'OFFLINE',
    statusReason: view?.statusReason ?? null,
    clusterIds,
    systemInfo: record.systemInfo,
    agent:
      record.agent &&
      Object.assign(
        {
          agentId: record.agent.agentId,
          agentVersion: view?.greeting?.agentVersion ?? record.agent.agentVersion,
          status: view?.agentStatus ?? null,
          uptime: view?.uptime ?? null,
          connected: view?.connected ?? false,
          reachable: view?.reachable ?? false,
          linkLostAt: view?.linkLostAt ?? null,
          registeredAt: record.agent.registeredAt,
          lastHeartbeatAt: view?.lastHeartbeatAt ?? null,
          clockOffsetSeconds: view?.clockOffsetSeconds ?? null,
        },
        fieldsOf(HelloFacts, view?.greeting),
        fieldsOf(BeatFacts, view?.says),
      ),
    metrics: view?.metrics ?? null,
    createdAt: record.createdAt,
    updatedAt: record.updatedAt,
  }
}

/** Milliseconds by which cluster facts for scripts may lag behind status changes, because a reconnecting fleet sends many. */
const membershipLife = 1000

/** Caches the result of `make` until the key changes; does not cache failures. */
function keptBy<T>(key: () => string, make: () => Promise<T>): () => Promise<T> {
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
interface Members {
  ids: number[]
  set: ReadonlySet<number>
}
interface Memberships {
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

function createMemberships(store: Store, { directory, changes, log }: Known): Memberships {
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

/** Runs one slice between two polls of the sockets. Global: all servers of a process share its event loop. */
const eventLoop = new Mutex()

/** Runs work in slices, so that requests and heartbeats are answered in between. */
export async function runInSlices<T>(work: Sliced<T>): Promise<T> {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    await eventLoop.run(() => setImmediate())
  }
}
