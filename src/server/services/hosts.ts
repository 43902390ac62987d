import { RsmError } from '../../core/errors.ts'
import type { HostService } from '../../core/services.ts'
import { storePage } from '../storage/paging.ts'
import type { HostRecord } from '../storage/records/host.ts'
import { bury, openEnrollments } from '../storage/tombstones.ts'
import { type Context, notFound, tellTokenEnded } from './context.ts'
import { defaultPort, patchedAccess } from './hosts/access.ts'
import { readHostMetrics } from './hosts/host-metrics.ts'
import { removeHost } from './hosts/removal.ts'
import { whereOf } from './hosts/where.ts'
import { patchedMap } from './merge-patch.ts'

export function createHosts(context: Context): HostService {
  const { store, engine, fleet, keys, presence, hints, clock, webhookEvents } = context

  const sealed = (id: number, field: string, value: string | null) =>
    value === null ? null : keys.seal(value, `hosts/${id}/${field}`)

  async function show(record: HostRecord) {
    const [host] = await fleet.showHosts([record])
    if (!host) throw notFound('host', record.id)
    return host
  }

  return {
    async list(query) {
      const sought = { where: await whereOf(context, query), order: query.sort ?? 'asc' } as const
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
          hostKey: input.hostKey ?? null,
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
        const next: HostRecord = {
          ...current,
          hostname: patch.hostname ?? current.hostname,
          ...patchedAccess(current, patch, (field, value) => keys.seal(value, `hosts/${id}/${field}`)),
          tags: patchedMap(patch.tags, current.tags),
          updatedAt: context.time(),
        }
        tx.put('hosts', next)
        return next
      })
      hints.publish('host', { id, change: 'updated' })
      return show(record)
    },

    remove: (id, { force = false } = {}) => removeHost(context, id, force),

    async revokeAgent(id) {
      const reach = webhookEvents.wants('agent.revoked') ? await webhookEvents.reach() : null
      // An earlier call may have been cut off after its commit.
      if ((await store.get('hosts', id))?.agent?.revokedAt) await engine.abandonHost(id, 'revoked')
      const agentId = await store.transact(async (tx) => {
        const current = await tx.get('hosts', id)
        if (!current?.agent?.tokenHash)
          throw new RsmError('not_found', `Host ${id} has no agent token to revoke`)
        const revokedAt = context.time()
        const agent = { ...current.agent, tokenHash: null, enrollmentId: null, revokedAt }
        tx.put('hosts', { ...current, agent })
        await bury(tx, current, 'revoked', revokedAt)
        const { hostname } = current
        const revoked = { hostId: id, hostname, agentId: current.agent.agentId }
        if (reach !== null) webhookEvents.write(tx, 'agent.revoked', revoked, { reach, hostIds: [id] })
        return current.agent.agentId
      })
      presence.revoked(id)
      tellTokenEnded(context, agentId)
      // After the link: nothing more is sent over it.
      await engine.abandonHost(id, 'revoked')
      return { id, openEnrollments: await openEnrollments(store, clock.now()) }
    },
  }
}
