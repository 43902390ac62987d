import type { TestFn } from 'ava'
import type { Target } from '../../src/core/protocol/http/clusters.ts'
import type { Services } from '../../src/core/services.ts'
import { rejects, rejectsUnknown } from './rejects.ts'
import type { ServicesOf } from './services-of.ts'

/** Suite for every implementation of HostService (contract §1, §3). */
export function hostsContract(test: TestFn, name: string, open: ServicesOf): void {
  const make = ({ hosts }: Services, hostname: string, more: object = {}) =>
    hosts.create({ hostname, ip: '10.0.0.1', ...more })

  test(`${name} hosts: a new host has its defaults, and its secrets are never shown`, async (t) => {
    const services = await open(t)
    const host = await make(services, 'web1', {
      password: 'hunter22',
      privateKey: 'KEY',
      authType: 'PASSWORD',
    })
    t.like(host, { id: 1, hostname: 'web1', sshPort: 22, authType: 'PASSWORD', username: null })
    t.like(host, {
      status: 'OFFLINE',
      statusReason: 'never heard',
      systemInfo: null,
      agent: null,
      metrics: null,
    })
    t.deepEqual([host.tags, host.clusterIds], [{}, []])
    t.false(/hunter22|KEY/.test(JSON.stringify(host)))
    t.deepEqual(await services.hosts.get(host.id), host)
    t.regex(host.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  })

  test(`${name} hosts: hostnames are unique regardless of case`, async (t) => {
    const services = await open(t)
    await make(services, 'web1')
    const other = await make(services, 'web2')
    await rejects(t, 'conflict', make(services, 'WEB1'))
    await rejects(t, 'conflict', services.hosts.update(other.id, { hostname: 'Web1' }))
    t.is((await services.hosts.update(other.id, { hostname: 'WEB2' })).hostname, 'WEB2')
  })

  test(`${name} hosts: a patch merges, null removes, and fields that are not named stay`, async (t) => {
    const services = await open(t)
    const { id } = await make(services, 'web1', { username: 'root', sshPort: 2222, tags: { a: '1', b: '2' } })
    const changed = await services.hosts.update(id, {
      username: null,
      sshPort: null,
      tags: { a: null, c: '3' },
    })
    t.like(changed, { hostname: 'web1', username: null, sshPort: 22 })
    t.deepEqual(changed.tags, { b: '2', c: '3' })
    t.deepEqual((await services.hosts.update(id, { tags: null })).tags, {})
    t.deepEqual((await services.hosts.update(id, {})).tags, {})
  })

  test(`${name} hosts: an unknown or removed id is not_found, and ids are never reused`, async (t) => {
    const services = await open(t)
    const { id } = await make(services, 'web1')
    t.deepEqual(await services.hosts.remove(id), { id, openEnrollments: [] })
    for (const work of [services.hosts.get(id), services.hosts.update(id, {}), services.hosts.remove(id)])
      await rejects(t, 'not_found', work)
    t.true((await make(services, 'web1')).id > id)
  })

  test(`${name} hosts: metrics cover the last 24 hours by default, and a range must not end before it begins`, async (t) => {
    const services = await open(t)
    const { id } = await make(services, 'web1')
    const { from, to, ...rest } = await services.hosts.metrics(id, {})
    t.deepEqual(rest, { hostId: id, samples: [] })
    t.is(Date.parse(to) - Date.parse(from), 24 * 3600_000)
    t.deepEqual(await rejects(t, 'invalid', services.hosts.metrics(id, { from: to, to: from })), ['from'])
    await rejects(t, 'not_found', services.hosts.metrics(id + 1, {}))
  })

  test(`${name} hosts: a removed host leaves its clusters`, async (t) => {
    const services = await open(t)
    const hosts = await Promise.all(['a', 'b'].map((hostname) => make(services, hostname)))
    const ids = hosts.map(({ id }) => id)
    const cluster = await services.clusters.create({ name: 'c', hostIds: ids })
    t.deepEqual((await services.hosts.get(ids[0] ?? 0)).clusterIds, [cluster.id])
    await services.hosts.remove(ids[0] ?? 0)
    t.deepEqual((await services.clusters.get(cluster.id)).hostIds, ids.slice(1))
  })

  test(`${name} hosts: a list has pages in ascending order of ids, and can be filtered`, async (t) => {
    const services = await open(t)
    for (let n = 1; n <= 5; n++) await make(services, `web${n}`, { tags: { odd: String(n % 2 === 1) } })
    const page = await services.hosts.list({ page: 1, size: 2 })
    t.deepEqual(
      page.content.map(({ hostname }) => hostname),
      ['web3', 'web4'],
    )
    t.like(page, { page: 1, size: 2, totalElements: 5, totalPages: 3 })
    t.deepEqual((await services.hosts.list({ page: 9, size: 2 })).content, [])
    t.is((await services.hosts.list({})).size, 20)
    t.is((await services.hosts.list({ tag: ['odd:true'] })).totalElements, 3)
    t.is((await services.hosts.list({ search: 'EB2' })).totalElements, 1)
    t.is((await services.hosts.list({ selector: 'web[1-3]!web2' })).totalElements, 2)
    t.is((await services.hosts.list({ status: 'ONLINE' })).totalElements, 0)
    t.deepEqual(await rejectsUnknown(t, services.hosts.list({ selector: 'nosuch' })), ['selector'])
  })

  test(`${name} hosts: a target selects hosts in natural order of names, in pages; an empty selection is refused`, async (t) => {
    const services = await open(t)
    for (const n of [10, 2, 1]) await make(services, `web${n}`, { tags: { odd: String(n % 2 === 1) } })
    const { id: db } = await make(services, 'db1')
    const { id: clusterId } = await services.clusters.create({ name: 'My DB', hostIds: [db] })
    const cases: [Target, string[]][] = [
      [{ all: true, exclude: ['web2'] }, ['db1', 'web1', 'web10']],
      [{ hosts: ['web*!web1'], clusters: ['my db'] }, ['db1', 'web2', 'web10']],
      [{ tags: ['odd=true'] }, ['web1']],
      [{ tags: ['odd:false'] }, ['web2', 'web10']],
      [{ selector: 'web10,web2' }, ['web2', 'web10']],
      [{ clusterId }, ['db1']],
    ]
    for (const [target, names] of cases) {
      const { content } = await services.hosts.select({ target })
      t.deepEqual(
        content.map(({ hostname }) => hostname),
        names,
      )
    }
    const page = await services.hosts.select({ target: { all: true } }, { page: 1, size: 3 })
    t.like(page, { totalElements: 4, totalPages: 2 })
    t.is(page.content[0]?.hostname, 'web10')
    const misspelt = services.hosts.select({ target: { hosts: ['web1', 'wbe2'], tags: ['odd=no'] } })
    t.deepEqual(await rejectsUnknown(t, misspelt), ['target.hosts[1]', 'target.tags[0]'])
    t.deepEqual(await rejectsUnknown(t, services.hosts.select({ target: { hosts: ['zz*'] } })), ['target'])
    t.deepEqual(await rejects(t, 'invalid', services.hosts.select({ target: { exclude: ['web1'] } })), [
      'target',
    ])
  })
}
