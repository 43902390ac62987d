import { RsmError } from '../../core/errors.ts'
import type { HostQuery } from '../../core/protocol/http/hosts.ts'
import type { HostService } from '../../core/services.ts'
import { isFinal } from '../../core/task/task-state.ts'
import type { HostRecord } from '../seams/records.ts'
import type { Transaction, Where } from '../seams/store.ts'
import { type Context, notFound, tellTokenEnded } from './context.ts'
import { readHostMetrics } from './hosts/host-metrics.ts'
import { patched, patchedMap } from './merge-patch.ts'
import { storePage } from './paging.ts'
import { bury, openEnrollments } from './tombstones.ts'

const defaultPort = 22

/** The parts of `key:value`. */
function keyAndValue(pair: string): [string, string] {
  const colon = pair.indexOf(':')
  return [pair.slice(0, colon), pair.slice(colon + 1)]
}

export function createHosts(context: Context): HostService {
  const { store, fleet, keys, engine, presence, history, hints, clock } = context

  const sealed = (id: number, field: string, value: string | null) =>
    value === null ? null : keys.seal(value, `hosts/${id}/${field}`)

  async function whereOf(query: HostQuery): Promise<Where<'hosts'>> {
    const { name, search, status, clusterId, tag, selector } = query
    const sets: (readonly number[])[] = []
    if (selector !== undefined) sets.push(await fleet.select(selector, 'selector'))
    if (clusterId !== undefined) {
      const cluster = await store.get('clusters', clusterId)
      sets.push(cluster ? await fleet.members(cluster) : [])
    }
    if (status) {
      const { hosts } = await fleet.directory()
      sets.push(hosts.flatMap((host) => (host.status === status ? [host.id] : [])))
    }
    const [first, ...others] = sets
    const narrowing = others.map((ids) => new Set(ids))
    return {
      ids: first?.filter((id) => narrowing.every((ids) => ids.has(id))),
      equals: { hostname: name?.toLowerCase() },
      contains: { fields: ['hostname', 'ip'], text: search },
      has: { tags: tag?.map(keyAndValue) },
    }
  }

  async function show(record: HostRecord) {
    const [host] = await fleet.showHosts([record])
    if (!host) throw notFound('host', record.id)
    return host
  }

  return {
    async list(query) {
      const sought = { where: await whereOf(query), order: query.sort ?? 'asc' } as const
      return storePage(store, 'hosts', query, sought, (items) => fleet.showHosts(items))
    },

    async get(id) {
      const record = await store.get('hosts', id)
      if (!record) throw notFound('host', id)
      return show(record)
    },

    metrics: (id, query) => readHostMetrics(context, id, query),

    async create(input) {
      const at = context.time()
      const record = await store.transact(async (tx) => {
        const id = await tx.nextId('hosts')
        const created: HostRecord = {
          id,
          hostname: input.hostname,
          ip: input.ip,
          sshPort: input.sshPort ?? defaultPort,
          authType: input.authType ?? 'NONE',
          username: input.username ?? null,
          password: sealed(id, 'password', input.password ?? null),
          privateKey: sealed(id, 'privateKey', input.privateKey ?? null),
          tags: input.tags ?? {},
          systemInfo: null,
          agent: null,
          createdAt: at,
          updatedAt: at,
        }
        tx.put('hosts', created)
        return created
      })
      hints.publish('host', { id: record.id, change: 'created' })
      return show(record)
    },

    async update(id, patch) {
      const record = await store.transact(async (tx) => {
        const current = await tx.get('hosts', id)
        if (!current) throw notFound('host', id)
        const secret = (field: 'password' | 'privateKey') =>
          patch[field] === undefined ? current[field] : sealed(id, field, patch[field])
        const next: HostRecord = {
          ...current,
          hostname: patch.hostname ?? current.hostname,
          ip: patch.ip ?? current.ip,
          sshPort: patched(patch.sshPort, current.sshPort, defaultPort),
          authType: patched(patch.authType, current.authType, 'NONE'),
          username: patched(patch.username, current.username, null),
          password: secret('password'),
          privateKey: secret('privateKey'),
          tags: patchedMap(patch.tags, current.tags),
          updatedAt: context.time(),
        }
        tx.put('hosts', next)
        return next
      })
      hints.publish('host', { id, change: 'updated' })
      return show(record)
    },

    async remove(id, options = {}) {
      const isBusy = async (reads: Pick<Transaction, 'find'>) => {
        const running = (await reads.find('executions', 'hostId', id)).filter(
          ({ status }) => !isFinal(status),
        )
        if (running.length > 0 && !options.force)
          throw new RsmError(
            'conflict',
            `Host ${id} takes part in ${running.length} running task(s); wait for them, cancel them, or add force=true`,
          )
        return running.length > 0
      }
      if (await isBusy(store)) await engine.abandonHost(id)
      const { removed, clusterIds, wasBusy } = await store.transact(async (tx) => {
        const current = await tx.get('hosts', id)
        if (!current) throw notFound('host', id)
        // A task may have come for it meanwhile.
        const wasBusy = await isBusy(tx)
        tx.remove('hosts', id)
        await bury(tx, current, 'removed', context.time())
        const { items: left } = await tx.query('clusters', { where: { has: { hostIds: [id] } } })
        for (const cluster of left)
          tx.put('clusters', { ...cluster, hostIds: cluster.hostIds.filter((member) => member !== id) })
        return { removed: current, clusterIds: left.map((cluster) => cluster.id), wasBusy }
      })
      presence.forget(id)
      if (removed.agent) tellTokenEnded(context, removed.agent.agentId)
      hints.publish('host', { id, change: 'removed' })
      for (const clusterId of clusterIds) hints.publish('cluster', { id: clusterId, change: 'updated' })
      if (wasBusy) await engine.abandonHost(id)
      // Last: removing files takes its time, and the agent's link must not stay open meanwhile.
      await history.forget(id)
      return { id, openEnrollments: await openEnrollments(store, clock.now()) }
    },

    async revokeAgent(id) {
      const agentId = await store.transact(async (tx) => {
        const current = await tx.get('hosts', id)
        if (!current?.agent?.tokenHash)
          throw new RsmError('not_found', `Host ${id} has no agent token to revoke`)
        const revokedAt = context.time()
        const agent = { ...current.agent, tokenHash: null, enrollmentId: null, revokedAt }
        tx.put('hosts', { ...current, agent })
        await bury(tx, current, 'revoked', revokedAt)
        return current.agent.agentId
      })
      presence.revoked(id)
      tellTokenEnded(context, agentId)
      return { id, openEnrollments: await openEnrollments(store, clock.now()) }
    },
  }
}
