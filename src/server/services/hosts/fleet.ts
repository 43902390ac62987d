import { RsmError } from '../../../core/errors.ts'
import type { Cluster } from '../../../core/protocol/http/clusters.ts'
import type { Host, HostStatus } from '../../../core/protocol/http/hosts.ts'
import type { KnownHost } from '../../../core/script/host-variables.ts'
import { createDirectory, type Directory } from '../../../core/selector/directory.ts'
import { parseSelector } from '../../../core/selector/parse.ts'
import { resolveInSlices } from '../../../core/selector/resolve.ts'
import type { Log } from '../../log.ts'
import type { PresenceView, Views } from '../../seams/presence.ts'
import type { ClusterRecord, HostRecord } from '../../seams/records.ts'
import type { Store } from '../../seams/store.ts'
import { inTurns } from '../../slices.ts'

/** Hosts and clusters as they are now, seen together: selectors, memberships and read representations. */
export interface Fleet {
  directory(): Promise<Directory>
  /** Host ids that a selector names, in natural order of names; throws `invalid` at `field`. */
  select(selector: string, field: string): Promise<number[]>
  /** The members of a cluster now, to show them; none where its selector can't be resolved any more. */
  members(cluster: ClusterRecord): Promise<number[]>
  /** The members of a cluster now, to run on: throws `invalid` where its selector names what no longer exists. */
  targets(cluster: ClusterRecord, field: string): Promise<number[]>
  /** What scripts are told of these hosts; those that are gone are left out. */
  readonly knownHosts: (hostIds: readonly number[]) => Promise<KnownHost[]>
  showHosts(records: readonly HostRecord[]): Promise<Host[]>
  showClusters(records: readonly ClusterRecord[]): Promise<Cluster[]>
  countByStatus(): Promise<Record<HostStatus, number>>
}

/** Milliseconds for which what scripts are told of clusters may be behind changes of status: each HELLO of a herd is one. */
const membershipLife = 1000

/** What `make` answers, made anew only when the key has changed, or when it failed. */
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

export function createFleet(store: Store, presence: Views, log: Log): Fleet {
  const changes = { hosts: 0, clusters: 0 }
  store.watch('hosts', () => void changes.hosts++)
  store.watch('clusters', () => void changes.clusters++)
  const changesOfBoth = () => `${changes.hosts} ${changes.clusters}`

  /** What a selector comes to, as long as the fleet stays as it is. */
  interface Members {
    ids: number[]
    set: ReadonlySet<number>
  }
  const selected = new WeakMap<Directory, Map<string, Promise<Members>>>()
  /** The selectors that the log has been told of, by cluster: every list would else tell it again. */
  const unresolved = new Map<number, string>()

  /** Every list asks for it. */
  const directory = keptBy(() => `${changesOfBoth()} ${presence.revision}`, readDirectory)
  async function readDirectory(): Promise<Directory> {
    const [hosts, clusters] = await Promise.all([store.query('hosts'), store.query('clusters')])
    const standings = await presence.standings(hosts.items.map(({ id }) => id))
    return createDirectory(
      hosts.items.map(({ id, hostname, tags, systemInfo }, index) => ({
        id,
        hostname,
        tags,
        ...(standings[index] ?? { status: 'OFFLINE', reachable: false }),
        os: systemInfo?.os ?? null,
        arch: systemInfo?.arch ?? null,
      })),
      clusters.items,
    )
  }

  /** Resolved once, whoever asks meanwhile. */
  function dynamicMembers(cluster: ClusterRecord, selector: string, known: Directory): Promise<Members> {
    const found = selected.get(known) ?? new Map<string, Promise<Members>>()
    selected.set(known, found)
    const members =
      found.get(selector) ??
      resolveToShow(cluster, selector, known).then((ids) => ({ ids, set: new Set(ids) }))
    found.set(selector, members)
    return members
  }

  /**
   * A selector that was good when it was stored can fail later: the fleet outgrows its bounds, a cluster takes a name
   * that it used. One such cluster must not take every list of hosts down with it, so that it is shown without members.
   */
  async function resolveToShow(
    cluster: ClusterRecord,
    selector: string,
    known: Directory,
  ): Promise<number[]> {
    try {
      const hosts = await inTurns(resolveInSlices(parseSelector(selector), known, { strictness: 'none' }))
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

  /** Answers, for a host, the clusters that it is in. */
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

  /** Made anew at most once a second where only statuses have changed. */
  const recentMembership = keptBy(
    () => `${changesOfBoth()} ${Math.floor(performance.now() / membershipLife)}`,
    membership,
  )

  async function members(cluster: ClusterRecord): Promise<number[]> {
    return cluster.selector === null
      ? cluster.hostIds
      : (await dynamicMembers(cluster, cluster.selector, await directory())).ids
  }

  return {
    directory,
    members,
    async targets(cluster, field) {
      if (cluster.selector === null) return cluster.hostIds
      const selector = parseSelector(cluster.selector, field)
      const hosts = await inTurns(
        resolveInSlices(selector, await directory(), { field, strictness: 'names' }),
      )
      return hosts.map(({ id }) => id)
    },
    async select(selector, field) {
      const hosts = await inTurns(
        resolveInSlices(parseSelector(selector, field), await directory(), { field }),
      )
      return hosts.map(({ id }) => id)
    },
    async knownHosts(hostIds) {
      const clustersOf = await recentMembership()
      const records = await store.getMany('hosts', hostIds)
      return records.flatMap((record) => {
        if (!record) return []
        const { id, hostname, tags } = record
        return [{ id, hostname, tags, clusters: clustersOf(id).map(({ name }) => name) }]
      })
    },
    async showHosts(records) {
      const clustersOf = await membership()
      const views = await presence.views(records.map(({ id }) => id))
      return records.map((record, index) =>
        showHost(
          record,
          views[index],
          clustersOf(record.id).map(({ id }) => id),
        ),
      )
    },
    async countByStatus() {
      const { items: hosts } = await store.query('hosts')
      const counts: Record<HostStatus, number> = { ONLINE: 0, OFFLINE: 0, WARNING: 0 }
      for (const { status } of await presence.standings(hosts.map(({ id }) => id))) counts[status]++
      return counts
    },
    async showClusters(records) {
      const known = records.some(({ selector }) => selector !== null) ? await directory() : null
      const shown: Cluster[] = []
      for (const record of records) {
        const { id, name, description, selector, createdAt, updatedAt } = record
        const hostIds =
          selector !== null && known ? (await dynamicMembers(record, selector, known)).ids : record.hostIds
        shown.push({
          id,
          name,
          description,
          hostIds,
          selector,
          hostCount: hostIds.length,
          createdAt,
          updatedAt,
        })
      }
      return shown
    },
  }
}

function showHost(record: HostRecord, view: PresenceView | undefined, clusterIds: number[]): Host {
  const { id, hostname, ip, sshPort, authType, username, tags, systemInfo, createdAt, updatedAt } = record
  return {
    id,
    hostname,
    ip,
    sshPort,
    authType,
    username,
    tags,
    status: view?.status ?? 'OFFLINE',
    statusReason: view?.statusReason ?? null,
    clusterIds,
    systemInfo,
    agent: record.agent && {
      agentId: record.agent.agentId,
      agentVersion: view?.running?.agentVersion ?? record.agent.agentVersion,
      status: view?.agentStatus ?? null,
      uptime: view?.uptime ?? null,
      connected: view?.connected ?? false,
      reachable: view?.reachable ?? false,
      linkLostAt: view?.linkLostAt ?? null,
      registeredAt: record.agent.registeredAt,
      lastHeartbeatAt: view?.lastHeartbeatAt ?? null,
      runAs: view?.running?.runAs ?? null,
      runsAsRoot: view?.running?.runsAsRoot ?? null,
      sandbox: view?.running?.sandbox ?? null,
      containment: view?.running?.containment ?? null,
      terminal: view?.running?.terminal ?? null,
      enforces: view?.running?.enforces ? [...view.running.enforces] : null,
      onDemand: view?.onDemand ?? null,
      linkFault: view?.linkFault ?? null,
      statusReason: view?.agentReason ?? null,
      clockOffsetSeconds: view?.clockOffsetSeconds ?? null,
    },
    metrics: view?.metrics ?? null,
    createdAt,
    updatedAt,
  }
}
