import type { TestFn } from 'ava'
import type { Services } from '../../src/core/services.ts'
import { rejects, rejectsUnknown } from './rejects.ts'
import type { ServicesOf } from './services-of.ts'

/** Suite for every implementation of ClusterService (contract §3, §8). */
export function clustersContract(test: TestFn, name: string, open: ServicesOf): void {
  async function withHosts(services: Services): Promise<number[]> {
    const ids: number[] = []
    for (const hostname of ['web1', 'web2', 'db1'])
      ids.push((await services.hosts.create({ hostname, ip: '10.0.0.1' })).id)
    return ids
  }

  test(`${name} clusters: members keep their order, appear once each, and must exist`, async (t) => {
    const services = await open(t)
    const [a = 0, b = 0] = await withHosts(services)
    const cluster = await services.clusters.create({ name: 'web', hostIds: [b, a, b] })
    t.like(cluster, { name: 'web', description: '', selector: null, hostCount: 2 })
    t.deepEqual(cluster.hostIds, [b, a])
    const faults = await rejectsUnknown(t, services.clusters.create({ name: 'x', hostIds: [a, 98, 99] }))
    t.deepEqual(faults, ['hostIds[1]', 'hostIds[2]'])
    await rejectsUnknown(t, services.clusters.update(cluster.id, { hostIds: [77] }))
    t.deepEqual((await services.clusters.get(cluster.id)).hostIds, [b, a])
  })

  test(`${name} clusters: a dynamic cluster has the members that its selector matches now`, async (t) => {
    const services = await open(t)
    const [a = 0, b = 0] = await withHosts(services)
    const cluster = await services.clusters.create({ name: 'web', selector: 'web*' })
    t.deepEqual(cluster.hostIds, [a, b])
    const { id } = await services.hosts.create({ hostname: 'web3', ip: '10.0.0.1' })
    t.deepEqual((await services.clusters.get(cluster.id)).hostIds, [a, b, id])
    await rejects(t, 'invalid', services.clusters.create({ name: 'x', selector: 'web[' }))
    await rejectsUnknown(t, services.clusters.create({ name: 'x', selector: 'nosuch' }))
    await rejects(t, 'invalid', services.clusters.create({ name: 'x', selector: 'web*', hostIds: [a] }))
  })

  test(`${name} clusters: a cluster that would contain itself is refused, and nothing changes`, async (t) => {
    const { clusters, hosts, tasks } = await open(t)
    await rejects(t, 'invalid', clusters.create({ name: 'a', selector: '@A' }))
    t.is((await clusters.list({ page: 0, size: 9 })).totalElements, 0)
    const b = await clusters.create({ name: 'b', hostIds: [] })
    const a = await clusters.create({ name: 'a', selector: '@b' })
    await rejects(t, 'invalid', clusters.update(b.id, { selector: '@a', hostIds: null }))
    t.deepEqual(await clusters.get(b.id), b)
    await rejects(t, 'invalid', clusters.update(a.id, { selector: 'x*,@a' }))
    t.deepEqual(await clusters.get(a.id), a)

    // A new name can close the circle: the selector of `a` names `b`, which was removed.
    await clusters.remove(b.id)
    await rejects(t, 'invalid', clusters.create({ name: 'b', selector: '@a' }))
    await rejects(t, 'invalid', clusters.update(a.id, { name: 'B' }))
    t.deepEqual(await clusters.get(a.id), a)
    t.is((await clusters.update(a.id, { description: 'x' })).description, 'x')
    await hosts.create({ hostname: 'x1', ip: '10.0.0.1' })
    const script = { type: 'BASH', content: 'true' } as const
    await rejectsUnknown(t, tasks.create({ script, target: { clusterId: a.id } }))
  })

  test(`${name} clusters: two concurrent changes that would close a circle: one is refused`, async (t) => {
    const { clusters } = await open(t)
    const [a, b] = [await clusters.create({ name: 'a' }), await clusters.create({ name: 'b' })]
    const results = await Promise.allSettled([
      clusters.update(a.id, { selector: '@b' }),
      clusters.update(b.id, { selector: '@a' }),
    ])
    t.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  })

  test(`${name} clusters: setting members clears the selector, and setting a selector clears the members`, async (t) => {
    const services = await open(t)
    const [a = 0] = await withHosts(services)
    const { id } = await services.clusters.create({ name: 'web', selector: 'web*' })
    t.like(await services.clusters.update(id, { hostIds: [a] }), { selector: null, hostCount: 1 })
    t.like(await services.clusters.update(id, { selector: 'db*' }), { selector: 'db*', hostCount: 1 })
    t.like(await services.clusters.update(id, { selector: null }), { selector: null, hostCount: 0 })
  })

  test(`${name} clusters: concurrent changes of members and of other fields are all kept`, async (t) => {
    const services = await open(t)
    const ids = await withHosts(services)
    const { id } = await services.clusters.create({ name: 'web' })
    await Promise.all([
      services.clusters.update(id, { hostIds: ids }),
      ...Array.from({ length: 5 }, (_, n) => services.clusters.update(id, { description: `${n}` })),
    ])
    t.deepEqual((await services.clusters.get(id)).hostIds, ids)
  })

  test(`${name} clusters: a duplicate name is a conflict, an unknown id is not_found, and lists have pages`, async (t) => {
    const { clusters } = await open(t)
    const { id } = await clusters.create({ name: 'Web' })
    await rejects(t, 'conflict', clusters.create({ name: 'web' }))
    const second = await clusters.create({ name: 'db' })
    await rejects(t, 'conflict', clusters.update(second.id, { name: 'WEB' }))
    t.deepEqual(
      (await clusters.list({ page: 1, size: 1 })).content.map((cluster) => cluster.name),
      ['db'],
    )
    await clusters.remove(id)
    for (const work of [clusters.get(id), clusters.update(id, {}), clusters.remove(id)])
      await rejects(t, 'not_found', work)
  })
}
