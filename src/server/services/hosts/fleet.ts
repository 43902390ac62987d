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

export function createFleet(store: Store, presence: Views, log: Log): Fleet {
  /** Records are immutable, so what follows from one may be kept as long as it is. */
  const staticMembers = new WeakMap<ClusterRecord, ReadonlySet<number>>()

  /** Of a dynamic cluster, as long as the fleet stays as it is. */
  interface Members {
    ids: number[]
    set: ReadonlySet<number>
  }
  const dynamic = new WeakMap<Directory, Map<ClusterRecord, Promise<Members>>>()
  /** The clusters that the log has been told of: every list would else tell it again. */
  const unresolved = new WeakSet<ClusterRecord>()
  let last: { revisions: string; directory: Directory } | null = null

  /** Made anew only when hosts, clusters, a status or what is reachable have changed: every list asks for it. */
  async function directory(): Promise<Directory> {
    const revisions = [store.revision('hosts'), store.revision('clusters'), presence.revision].join()
    if (last?.revisions !== revisions) last = { revisions, directory: await readDirectory() }
    return last.directory
  }

  async function readDirectory(): Promise<Directory> {
    const [hosts, clusters] = await Promise.all([store.all('hosts'), store.all('clusters')])
    const standings = await presence.standings(hosts.map(({ id }) => id))
    return createDirectory(
      hosts.map(({ id, hostname, tags, systemInfo }, index) => ({
        id,
        hostname,
        tags,
        ...(standings[index] ?? { status: 'OFFLINE', reachable: false }),
        os: systemInfo?.os ?? null,
        arch: systemInfo?.arch ?? null,
      })),
      clusters,
    )
  }

  /** Resolved once, whoever asks meanwhile. */
  function dynamicMembers(cluster: ClusterRecord, selector: string, known: Directory): Promise<Members> {
    const found = dynamic.get(known) ?? new Map<ClusterRecord, Promise<Members>>()
    dynamic.set(known, found)
    let members = found.get(cluster)
    if (!members) {
      members = resolveToShow(cluster, selector, known).then((ids) => ({ ids, set: new Set(ids) }))
      found.set(cluster, members)
    }
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
      unresolved.delete(cluster)
      return hosts.map(({ id }) => id)
    } catch (error) {
      if (!(error instanceof RsmError && error.code === 'invalid')) throw error
      const { id, name } = cluster
      if (!unresolved.has(cluster))
        log.warn(
          { err: error, clusterId: id, name },
          'a cluster is shown without members: its selector fails',
        )
      unresolved.add(cluster)
      return []
    }
  }

  /** Answers, for a host, the clusters that it is in. */
  async function membership(): Promise<(hostId: number) => ClusterRecord[]> {
    const clusters = await store.all('clusters')
    const known = clusters.some(({ selector }) => selector !== null) ? await directory() : null
    const sets: { cluster: ClusterRecord; set: ReadonlySet<number> }[] = []
    for (const cluster of clusters) {
      let set = staticMembers.get(cluster)
      if (cluster.selector !== null && known)
        ({ set } = await dynamicMembers(cluster, cluster.selector, known))
      else if (!set) {
        set = new Set(cluster.hostIds)
        staticMembers.set(cluster, set)
      }
      sets.push({ cluster, set })
    }
    return (hostId) => sets.filter(({ set }) => set.has(hostId)).map(({ cluster }) => cluster)
  }

  let recent: { revisions: string; until: number; clustersOf: ReturnType<typeof membership> } | null = null

  /** As `membership`, but made anew at most once a second where only statuses have changed. */
  function recentMembership(): ReturnType<typeof membership> {
    const revisions = [store.revision('hosts'), store.revision('clusters')].join()
    const now = performance.now()
    if (recent?.revisions !== revisions || now >= recent.until)
      recent = { revisions, until: now + membershipLife, clustersOf: membership() }
    return recent.clustersOf
  }

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
      const records = await Promise.all(hostIds.map((id) => store.get('hosts', id)))
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
      const hosts = await store.all('hosts')
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
