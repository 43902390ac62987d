import { invalid, RsmError } from '../../core/errors.ts'
import { createDownsample } from '../../core/hosts/downsample.ts'
import type { Parted } from '../../core/protocol/http/agent.ts'
import {
  defaultPoints,
  type HostMetrics,
  type HostMetricsQuery,
  type HostPatch,
  type HostQuery,
} from '../../core/protocol/http/hosts.ts'
import { parseSelector } from '../../core/selector/parse.ts'
import type { HostService } from '../../core/services.ts'
import { isoTime } from '../../disk/clock.ts'
import { storePage } from '../storage/paging.ts'
import { demand } from '../storage/ports/caller.ts'
import { keptFor } from '../storage/ports/presence.ts'
import type { Where } from '../storage/ports/store.ts'
import type { HostRecord } from '../storage/records/host.ts'
import { bury, openEnrollments } from '../storage/tombstones.ts'
import { type Context, type ForCallers, notFound, patched, patchedMap, publishTokenEnded } from './context.ts'
import { hostsOf } from './targets.ts'

const defaultPort = 22

/** Milliseconds of history for a query without `from`. */
const defaultRange = 24 * 3600_000

export function createHosts(context: Context): ForCallers<HostService> {
  const { store, engine, fleet, keys, presence, hints, clock, webhookEvents } = context

  const sealed = (id: number, field: string, value: string | null) =>
    value === null ? null : keys.seal(value, `hosts/${id}/${field}`)

  async function toApi(record: HostRecord) {
    const [host] = await fleet.hostsToApi([record])
    if (!host) throw notFound('host', record.id)
    return host
  }

  return {
    async list(_, query) {
      const sought = { where: await whereOf(context, query), order: query.sort ?? 'asc' } as const
      return storePage(store, 'hosts', query, sought, (items) => fleet.hostsToApi(items))
    },

    async select(_, { target }, query = {}) {
      const { hostIds } = await hostsOf(context, target, 'target')
      const sought = { where: { ids: hostIds }, order: 'hostname' } as const
      return storePage(store, 'hosts', query, sought, (items) => fleet.hostsToApi(items))
    },

    async get(_, id) {
      const record = await store.get('hosts', id)
      if (!record) throw notFound('host', id)
      return toApi(record)
    },

    metrics: (_, id, query) => readHostMetrics(context, id, query),

    async create(_, input) {
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
      return toApi(record)
    },

    async update(caller, id, patch) {
      // Requires ADMIN, because this key decides where the server sends the host's credentials.
      if (patch.hostKey !== undefined) demand(caller, 'administer')
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
      return toApi(record)
    },

    remove: (_, id, { force = false } = {}) => removeHost(context, id, force),

    async revokeAgent(_, id) {
      const reach = webhookEvents.wants('agent.revoked') ? await webhookEvents.reach() : null
      // An earlier call may have been interrupted after its commit.
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
      publishTokenEnded(context, agentId)
      // After the link is closed, so that nothing more is sent over it.
      await engine.abandonHost(id, 'revoked')
      return { id, openEnrollments: await openEnrollments(store, clock.now()) }
    },
  }
}

async function whereOf(
  { store, fleet }: Pick<Context, 'store' | 'fleet'>,
  query: HostQuery,
): Promise<Where<'hosts'>> {
  const { name, search, status, clusterId, tag, selector } = query
  const sets: (readonly number[])[] = []
  if (selector !== undefined) sets.push(await fleet.select(parseSelector(selector), 'selector'))
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

function keyAndValue(pair: string): [string, string] {
  const colon = pair.indexOf(':')
  return [pair.slice(0, colon), pair.slice(colon + 1)]
}

type Secret = 'password' | 'privateKey'
type Access = Pick<HostRecord, 'ip' | 'sshPort' | 'authType' | 'username' | Secret | 'hostKey'>
type Seal = (field: Secret, value: string) => string

/**
 * Applies a patch of SSH access. Stored secrets belong to one address, port and user: a change of these drops them, and the
 * host key too unless new secrets are given (contract §10).
 */
function patchedAccess(current: HostRecord, patch: HostPatch, seal: Seal): Access {
  const place = {
    ip: patch.ip ?? current.ip,
    sshPort: patched(patch.sshPort, current.sshPort, defaultPort),
    username: patched(patch.username, current.username, null),
  }
  const isElsewhere =
    place.ip !== current.ip || place.sshPort !== current.sshPort || place.username !== current.username
  const hasNew = typeof patch.password === 'string' || typeof patch.privateKey === 'string'
  const isLeft = isElsewhere && !hasNew
  const secret = (field: Secret) => {
    const given = patch[field]
    if (given === undefined) return isElsewhere ? null : current[field]
    return given === null ? null : seal(field, given)
  }
  const hadSecret = current.password !== null || current.privateKey !== null
  return {
    ...place,
    authType: patched(patch.authType, isLeft && hadSecret ? 'NONE' : current.authType, 'NONE'),
    password: secret('password'),
    privateKey: secret('privateKey'),
    hostKey: patched(patch.hostKey, isLeft ? null : (current.hostKey ?? null), null),
  }
}

/** Removes a host and all its data. Errors: `conflict` while it runs tasks, unless `force`. */
async function removeHost(context: Context, id: number, force: boolean): Promise<Parted> {
  const { store, engine, presence, history, hints, clock } = context
  const isBusy = (open: number) => {
    if (open > 0 && !force)
      throw new RsmError(
        'conflict',
        `Host ${id} takes part in ${open} running task(s); wait for them, cancel them, or add force=true`,
      )
    return open > 0
  }
  if (await engine.transactWithOpen(id, async (_, open) => isBusy(open)))
    await engine.abandonHost(id, 'removed')
  const { removed, clusterIds, wasBusy } = await engine.transactWithOpen(id, async (tx, open) => {
    const current = await tx.get('hosts', id)
    if (!current) throw notFound('host', id)
    // Check again, because a task may have started meanwhile.
    const wasBusy = isBusy(open)
    tx.remove('hosts', id)
    await bury(tx, current, 'removed', context.time())
    const { items: left } = await tx.query('clusters', { where: { has: { hostIds: [id] } } })
    for (const cluster of left)
      tx.put('clusters', { ...cluster, hostIds: cluster.hostIds.filter((member) => member !== id) })
    return { removed: current, clusterIds: left.map((cluster) => cluster.id), wasBusy }
  })
  presence.forget(id)
  if (removed.agent) publishTokenEnded(context, removed.agent.agentId)
  hints.publish('host', { id, change: 'removed' })
  for (const clusterId of clusterIds) hints.publish('cluster', { id: clusterId, change: 'updated' })
  if (wasBusy) await engine.abandonHost(id, 'removed')
  // Last, because removing files takes long, and the agent's link must close first.
  await history.forget(id)
  return { id, openEnrollments: await openEnrollments(store, clock.now()) }
}

/** Reads a host's history, downsampled on the fly, so that a week of it needs little memory (contract §3). */
async function readHostMetrics(
  { store, history, clock }: Context,
  id: number,
  query: HostMetricsQuery,
): Promise<HostMetrics> {
  if (!(await store.get('hosts', id))) throw notFound('host', id)
  const now = clock.now()
  const askedTo = query.to === undefined ? now : Date.parse(query.to)
  const askedFrom = query.from === undefined ? Math.min(askedTo, now) - defaultRange : Date.parse(query.from)
  if (askedFrom > askedTo) throw invalid([{ field: 'from', message: 'must not be after to' }])
  const oldest = now - keptFor
  // Spend the points on the range that can have history.
  const from = askedTo < oldest ? askedFrom : Math.max(askedFrom, oldest)
  const to = from > now ? askedTo : Math.min(askedTo, now)
  const downsample = createDownsample({ from, to, points: query.points ?? defaultPoints })
  for await (const sample of history.read(id, from, to)) downsample.add(sample)
  return { hostId: id, from: isoTime(from), to: isoTime(to), samples: downsample.samples() }
}
