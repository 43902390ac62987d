import { RsmError } from '../../core/errors.ts'
import type { HostStatus } from '../../core/hosts/host.ts'
import type { Cluster } from '../../core/protocol/http/clusters.ts'
import { BeatFacts, HelloFacts } from '../../core/protocol/http/host-agent.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { KnownHost } from '../../core/scripts/host-variables.ts'
import { createDirectory, type Directory } from '../../core/selector/directory.ts'
import { parseSelector, type Selector } from '../../core/selector/parse.ts'
import { resolveInSlices } from '../../core/selector/resolve.ts'
import type { Log } from '../../disk/log.ts'
import { pick } from '../storage/pick.ts'
import type { PresenceView, Views } from '../storage/ports/presence.ts'
import type { Store } from '../storage/ports/store.ts'
import type { ClusterRecord, HostRecord } from '../storage/records/host.ts'
import { createMemberships, keptBy } from './memberships.ts'
import { fieldsOf } from './reported.ts'
import { runInSlices } from './slices.ts'

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
