import { RsmError } from '../../../core/errors.ts'
import type { Parted } from '../../../core/protocol/http/enrollments.ts'
import { bury, openEnrollments } from '../../storage/tombstones.ts'
import { type Context, notFound, tellTokenEnded } from '../context.ts'

/** Removes a host with all that is kept of it. `conflict` while it runs something, unless `force`. */
export async function removeHost(context: Context, id: number, force: boolean): Promise<Parted> {
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
    // A task may have come for it meanwhile.
    const wasBusy = isBusy(open)
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
  if (wasBusy) await engine.abandonHost(id, 'removed')
  // Last: removing files takes its time, and the agent's link must not stay open meanwhile.
  await history.forget(id)
  return { id, openEnrollments: await openEnrollments(store, clock.now()) }
}
