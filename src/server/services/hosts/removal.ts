import { RsmError } from '../../../core/errors.ts'
import type { Parted } from '../../../core/protocol/http/enrollments.ts'
import { isFinal } from '../../../core/task/task.ts'
import type { Transaction } from '../../seams/store.ts'
import { type Context, notFound, tellTokenEnded } from '../context.ts'
import { bury, openEnrollments } from '../tombstones.ts'

/** Removes a host with all that is kept of it. `conflict` while it runs something, unless `force`. */
export async function removeHost(context: Context, id: number, force: boolean): Promise<Parted> {
  const { store, engine, presence, history, hints, clock } = context
  const isBusy = async (reads: Pick<Transaction, 'find'>) => {
    const running = (await reads.find('executions', 'hostId', id)).filter(({ status }) => !isFinal(status))
    if (running.length > 0 && !force)
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
}
