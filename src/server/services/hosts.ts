import { RsmError } from '../../core/errors.ts'
import type { HostQuery } from '../../core/protocol/http/hosts.ts'
import type { HostService } from '../../core/services.ts'
import { isFinal } from '../../core/task/task-state.ts'
import type { HostRecord } from '../seams/records.ts'
import type { Transaction } from '../seams/store.ts'
import { type Context, notFound, tellTokenEnded } from './context.ts'
import { readHostMetrics } from './hosts/host-metrics.ts'
import { patched, patchedMap } from './merge-patch.ts'
import { pageOf, slicePage, storePage } from './paging.ts'
import { bury, openEnrollments } from './tombstones.ts'

const defaultPort = 22

export function createHosts(context: Context): HostService {
  const { store, fleet, keys, engine, presence, history, hints, clock } = context

  const sealed = (id: number, field: string, value: string | null) =>
    value === null ? null : keys.seal(value, `hosts/${id}/${field}`)

  async function filtered(query: HostQuery): Promise<HostRecord[]> {
    const { name, search, status, clusterId, tag, selector } = query
    let hosts = [
      ...(name === undefined
        ? await store.all('hosts')
        : await store.find('hosts', 'hostname', name.toLowerCase())),
    ]
    if (search) {
      const wanted = search.toLowerCase()
      hosts = hosts.filter(
        ({ hostname, ip }) => hostname.toLowerCase().includes(wanted) || ip.toLowerCase().includes(wanted),
      )
    }
    if (status) {
      const views = await presence.views(hosts.map(({ id }) => id))
      hosts = hosts.filter((_, index) => views[index]?.status === status)
    }
    if (clusterId !== undefined) {
      const cluster = await store.get('clusters', clusterId)
      const members = new Set(cluster ? await fleet.members(cluster) : [])
      hosts = hosts.filter(({ id }) => members.has(id))
    }
    for (const pair of tag ?? []) {
      const colon = pair.indexOf(':')
      const [key, value] = [pair.slice(0, colon), pair.slice(colon + 1)]
      hosts = hosts.filter(({ tags }) => Object.hasOwn(tags, key) && tags[key] === value)
    }
    if (selector !== undefined) {
      const selected = new Set(await fleet.select(selector, 'selector'))
      hosts = hosts.filter(({ id }) => selected.has(id))
    }
    return hosts
  }

  async function show(record: HostRecord) {
    const [host] = await fleet.showHosts([record])
    if (!host) throw notFound('host', record.id)
    return host
  }

  return {
    async list(query) {
      const { page: _, size: __, ...filters } = query
      const plain = Object.values(filters).every((one) => one === undefined || one === '')
      const { items, total } = plain
        ? await storePage(store, 'hosts', query)
        : slicePage(await filtered(query), query)
      return pageOf(await fleet.showHosts(items), total, query)
    },

    async get(id) {
      const record = await store.get('hosts', id)
      if (!record) throw notFound('host', id)
      return show(record)
    },

    metrics: (id, query) => readHostMetrics(context, id, query),

    async create(input) {
      const at = context.time()
      const record = await store.transact((tx) => {
        const id = tx.nextId('hosts')
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
        bury(tx, current, 'removed', context.time())
        const left: number[] = []
        for (const cluster of await store.all('clusters')) {
          const newest = await tx.get('clusters', cluster.id)
          if (!newest?.hostIds.includes(id)) continue
          tx.put('clusters', { ...newest, hostIds: newest.hostIds.filter((member) => member !== id) })
          left.push(newest.id)
        }
        return { removed: current, clusterIds: left, wasBusy }
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
        bury(tx, current, 'revoked', revokedAt)
        return current.agent.agentId
      })
      presence.revoked(id)
      tellTokenEnded(context, agentId)
      return { id, openEnrollments: await openEnrollments(store, clock.now()) }
    },
  }
}
