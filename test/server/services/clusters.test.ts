import test from 'ava'
import type { ClusterRecord } from '../../../src/server/storage/records/host.ts'
import { rejects } from '../../contracts/rejects.ts'
import { startInsides } from '../../helpers/servers/services.ts'

test('a stored cluster whose selector fails is shown without members, and other answers still work', async (t) => {
  const { services, context } = await startInsides(t)
  const { clusters, hosts, tasks } = services
  const at = context.time()
  const stored = (id: number, name: string, selector: string): ClusterRecord => ({
    id,
    name,
    description: '',
    hostIds: [],
    selector,
    createdAt: at,
    updatedAt: at,
  })
  const ids = await context.store.transact(async (tx) => {
    const next = () => tx.nextId('clusters')
    const circle = [await next(), await next(), await next()] as const
    tx.put('clusters', stored(circle[0], 'a', '@b'))
    tx.put('clusters', stored(circle[1], 'b', '@a'))
    tx.put('clusters', stored(circle[2], 'large', 'n[1-999999]'))
    return circle
  })
  const host = await hosts.create({ hostname: 'web1', ip: '10.0.0.1' })
  t.deepEqual(host.clusterIds, [])
  t.is((await hosts.update(host.id, { tags: { dc: 'fra' } })).tags['dc'], 'fra')
  t.is((await hosts.list({ page: 0, size: 9 })).totalElements, 1)
  const shown = (await clusters.list({ page: 0, size: 9 })).content
  t.deepEqual(
    shown.map(({ hostCount }) => hostCount),
    [0, 0, 0],
  )
  for (const clusterId of ids) {
    t.is((await hosts.list({ page: 0, size: 9, clusterId })).totalElements, 0)
    const script = { type: 'BASH', content: 'true' } as const
    await rejects(t, 'invalid', tasks.create({ script, target: { clusterId } }))
    t.is((await clusters.update(clusterId, { description: 'x' })).description, 'x')
  }
  t.deepEqual((await clusters.update(ids[1], { selector: 'web*' })).hostIds, [host.id])
  t.deepEqual((await clusters.get(ids[0])).hostIds, [host.id])
})
