import { type FieldFault, invalid } from '../../core/errors.ts'
import { createDirectory, type SelectorHost } from '../../core/selector/directory.ts'
import { reachableWord } from '../../core/selector/group.ts'
import { parseSelector } from '../../core/selector/parse.ts'
import { resolveInSlices, type Strictness } from '../../core/selector/resolve.ts'
import type { ClusterService } from '../../core/services.ts'
import { unknownName } from '../../core/text/nearest.ts'
import { runInSlices } from '../hosts/fleet.ts'
import { storePage } from '../storage/paging.ts'
import type { Transaction } from '../storage/ports/store.ts'
import type { ClusterRecord } from '../storage/records/host.ts'
import { type Context, type ForCallers, notFound, patched } from './context.ts'

/** A fault for each id of an unknown host (contract §1: a 400 naming the field). */
export async function unknownHosts(
  context: Context,
  hostIds: readonly number[],
  field: string,
): Promise<FieldFault[]> {
  const hosts = await context.store.getMany('hosts', hostIds)
  return hostIds.flatMap((hostId, index) =>
    hosts[index] ? [] : [{ field: `${field}[${index}]`, message: unknownName('host', String(hostId), []) }],
  )
}

export function createClusters(context: Context): ForCallers<ClusterService> {
  const { store, fleet, hints } = context

  async function toApi(record: ClusterRecord) {
    const [cluster] = await fleet.clustersToApi([record])
    if (!cluster) throw notFound('cluster', record.id)
    return cluster
  }

  function checkName(name: string | undefined): void {
    if (name?.toLowerCase() === reachableWord)
      throw invalid([
        { field: 'name', message: `@${reachableWord} selects reachable hosts: choose another name` },
      ])
  }

  async function check(hostIds: readonly number[], selector: string | null): Promise<void> {
    if (hostIds.length > 0 && selector !== null)
      throw invalid([{ field: 'selector', message: 'give either hostIds or selector' }])
    const faults = await unknownHosts(context, hostIds, 'hostIds')
    if (faults.length > 0) throw invalid(faults)
  }

  /**
   * Resolves the selector of `next` against the clusters including `next`, so that no cluster can contain itself:
   * neither directly, nor through another one, nor by taking a name that another selects.
   */
  async function checkSelector(
    tx: Transaction,
    next: ClusterRecord,
    hosts: readonly SelectorHost[],
    strictness: Strictness,
  ): Promise<void> {
    if (next.selector === null) return
    const selector = parseSelector(next.selector)
    await tx.lock('clusters')
    const { items } = await tx.query('clusters')
    const clusters = [next, ...items.filter(({ id }) => id !== next.id)]
    await runInSlices(resolveInSlices(selector, createDirectory(hosts, clusters), { strictness }))
  }

  return {
    async list(_, query) {
      const where = {
        equals: { name: query.name?.toLowerCase() },
        contains: { fields: ['name', 'description'], text: query.search },
      } as const
      return storePage(store, 'clusters', query, { where }, (items) => fleet.clustersToApi(items))
    },
    async get(_, id) {
      const record = await store.get('clusters', id)
      if (!record) throw notFound('cluster', id)
      return toApi(record)
    },
    async create(_, input) {
      checkName(input.name)
      const hostIds = [...new Set(input.hostIds)]
      await check(input.hostIds ?? [], input.selector ?? null)
      const at = context.time()
      const { hosts } = await fleet.directory()
      const record = await store.transact(async (tx) => {
        const created: ClusterRecord = {
          id: await tx.nextId('clusters'),
          name: input.name,
          description: input.description ?? '',
          hostIds,
          selector: input.selector ?? null,
          createdAt: at,
          updatedAt: at,
        }
        await checkSelector(tx, created, hosts, 'names')
        tx.put('clusters', created)
        return created
      })
      hints.publish('cluster', { id: record.id, change: 'created' })
      return toApi(record)
    },
    async update(_, id, patch) {
      if (!(await store.get('clusters', id))) throw notFound('cluster', id)
      checkName(patch.name)
      await check(patch.hostIds ?? [], patch.selector ?? null)
      const { hosts } = await fleet.directory()
      const record = await store.transact(async (tx) => {
        const current = await tx.get('clusters', id)
        if (!current) throw notFound('cluster', id)
        // Listing members ends a selection, and vice versa; both at once are a fault.
        const selector = patched(patch.selector, patch.hostIds ? null : current.selector, null)
        const hostIds = [...new Set(patched(patch.hostIds, patch.selector ? [] : current.hostIds, []))]
        const next: ClusterRecord = {
          ...current,
          name: patch.name ?? current.name,
          description: patched(patch.description, current.description, ''),
          hostIds,
          selector,
          updatedAt: context.time(),
        }
        // An unchanged selector may refer to deleted records (contract §8), but a new name can still close a cycle.
        if (next.selector !== current.selector) await checkSelector(tx, next, hosts, 'names')
        else if (next.name !== current.name) await checkSelector(tx, next, hosts, 'none')
        tx.put('clusters', next)
        return next
      })
      hints.publish('cluster', { id, change: 'updated' })
      return toApi(record)
    },
    async remove(_, id) {
      await store.transact(async (tx) => {
        if (!(await tx.get('clusters', id))) throw notFound('cluster', id)
        tx.remove('clusters', id)
      })
      hints.publish('cluster', { id, change: 'removed' })
      return { id }
    },
  }
}
