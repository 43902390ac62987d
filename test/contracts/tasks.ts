import type { TestFn } from 'ava'
import type { Services } from '../../src/core/services.ts'
import { rejects, rejectsUnknown } from './rejects.ts'
import type { ServicesOf } from './services-of.ts'

/** Suite for every implementation of TaskService, on hosts without an agent (contract §3, §4). */
export function tasksContract(test: TestFn, name: string, open: ServicesOf): void {
  const script = { content: 'true' }
  async function host(services: Services, hostname = 'web1'): Promise<number> {
    return (await services.hosts.create({ hostname, ip: '10.0.0.1' })).id
  }

  test(`${name} tasks: async:false returns the final task`, async (t) => {
    const services = await open(t)
    const id = await host(services)
    const ended = await services.tasks.create({
      script,
      target: { hostIds: [id] },
      params: { A: '1' },
      async: false,
    })
    t.like(ended, { status: 'FAILED', hostCount: 1, strategy: 'PARALLEL', batchSize: null, timeout: 300 })
    t.like(ended, { scriptId: null, type: 'BASH', createdBy: 'admin' })
    t.deepEqual(await services.tasks.get(ended.taskId), ended as never)
    const logs = await services.tasks.logs(ended.taskId, {})
    t.deepEqual(logs, { taskId: ended.taskId, entries: [], next: 0, previous: 0 })
    await rejects(t, 'conflict', services.tasks.cancel(ended.taskId))
  })

  test(`${name} tasks: scripts and clusters run by id, with the script version current at that time`, async (t) => {
    const services = await open(t)
    const id = await host(services)
    const stored = await services.scripts.create({ name: 's', type: 'PYTHON', content: 'pass', timeout: 9 })
    const cluster = await services.clusters.create({ name: 'c', hostIds: [id] })
    const { taskId } = await services.tasks.executeCluster(cluster.id, {
      scriptId: stored.id,
      strategy: 'ROLLING',
      async: false,
    })
    await services.scripts.update(stored.id, { content: 'other' })
    const task = await services.tasks.get(taskId)
    t.like(task, {
      scriptId: stored.id,
      scriptVersion: 1,
      scriptName: 's',
      clusterId: cluster.id,
      timeout: 9,
    })
    t.like(task, { strategy: 'ROLLING', batchSize: '25%', type: 'PYTHON' })
    const second = await services.tasks.executeScript(stored.id, { hostIds: [id], timeout: 0, async: false })
    t.like(await services.tasks.get(second.taskId), { scriptVersion: 2, timeout: 0 })
    const none = services.tasks.executeScript(stored.id, { hostIds: [] })
    t.deepEqual(await rejectsUnknown(t, none), ['hostIds'])
  })

  test(`${name} tasks: a script without a name is shown by its first line, in lists too`, async (t) => {
    const services = await open(t)
    const target = { hostIds: [await host(services)] }
    const cases: [script: { content: string; name?: string }, firstLine: string | null][] = [
      [{ content: '#!/bin/sh\n\n  # why\n\tdf -h /var\necho' }, 'df -h /var'],
      [{ content: `echo ${'😀'.repeat(60)}` }, `echo ${'😀'.repeat(37)}…`],
      [{ content: '# nothing' }, null],
      [{ content: 'true', name: 'noop' }, null],
    ]
    for (const [script, firstLine] of cases) {
      const { taskId } = await services.tasks.create({ script, target, async: false })
      t.is((await services.tasks.get(taskId)).firstLine, firstLine)
      t.is((await services.tasks.list({ size: 1 })).content[0]?.firstLine, firstLine)
    }
  })

  test(`${name} tasks: a list is newest first, with filters and pages; results have pages too`, async (t) => {
    const services = await open(t)
    const ids = [await host(services, 'a'), await host(services, 'b')]
    const made: string[] = []
    for (const hostIds of [ids, ids.slice(0, 1), ids])
      made.push((await services.tasks.create({ script, target: { hostIds }, async: false })).taskId)
    const listed = async (query: object) =>
      (await services.tasks.list(query)).content.map(({ taskId }) => taskId)
    t.deepEqual(await listed({}), made.toReversed())
    t.deepEqual(await listed({ size: 1, page: 1 }), [made[1]])
    t.deepEqual(await listed({ hostId: ids[1] }), [made[2], made[0]])
    t.deepEqual(await listed({ status: 'SUCCESS' }), [])
    t.deepEqual(await listed({ createdBy: 'admin', status: 'FAILED' }), made.toReversed())
    const narrowed = await services.tasks.get(made[0] ?? '', { page: 1, size: 1 })
    t.deepEqual(
      narrowed.results.map(({ hostname }) => hostname),
      ['b'],
    )
    t.false('results' in ((await services.tasks.list({})).content[0] ?? {}))
  })

  test(`${name} tasks: a retry runs the same text with the same options on hosts that did not succeed`, async (t) => {
    const services = await open(t)
    const ids = [await host(services, 'a'), await host(services, 'b')]
    const stored = await services.scripts.create({ name: 's', type: 'PYTHON', content: 'pass' })
    const first = await services.tasks.executeScript(stored.id, {
      hostIds: ids.toReversed(),
      params: { A: '1' },
      strategy: 'ROLLING',
      batchSize: [1, '50%'],
      maxFailures: 5,
      timeout: 7,
      async: false,
    })
    await services.scripts.update(stored.id, { content: 'other' })
    await services.hosts.remove(ids[1] ?? 0)
    const retried = await services.tasks.retry(first.taskId, { async: false })
    t.not(retried.taskId, first.taskId)
    const task = await services.tasks.get(retried.taskId)
    t.like(task, { retryOf: first.taskId, scriptId: stored.id, scriptVersion: 1, timeout: 7, hostCount: 1 })
    t.like(task, { strategy: 'ROLLING', params: { A: '1' } })
    t.deepEqual(task.batchSize, [1, '50%'])
    t.deepEqual(
      task.results.map(({ hostname }) => hostname),
      ['a'],
    )
    t.is((await services.tasks.script(retried.taskId)).content, 'pass')
    t.is((await services.tasks.get(first.taskId)).retryOf, null)
    const again = await services.tasks.retry(first.taskId, { async: false }, 'key')
    t.is((await services.tasks.retry(first.taskId, { async: false }, 'key')).taskId, again.taskId)
    await services.hosts.remove(ids[0] ?? 0)
    await rejects(t, 'conflict', services.tasks.retry(first.taskId, {}))
    await rejects(t, 'not_found', services.tasks.retry('nosuch', {}))
  })

  test(`${name} tasks: a retry requires the secret params again, by name`, async (t) => {
    const services = await open(t)
    const id = await host(services)
    const secretParams = { KEY: 'a secret', OTHER: 'another' }
    const { taskId } = await services.tasks.create({
      script,
      secretParams,
      target: { hostIds: [id] },
      async: false,
    })
    const shown = await services.tasks.script(taskId)
    t.deepEqual(shown.secretParams, ['KEY', 'OTHER'])
    t.false(JSON.stringify(shown).includes('another'))
    t.deepEqual(
      await rejects(t, 'invalid', services.tasks.retry(taskId, { secretParams: { KEY: 'x', MORE: 'y' } })),
      ['secretParams.MORE', 'secretParams.OTHER'],
    )
    const retried = await services.tasks.retry(taskId, { secretParams, async: false })
    t.deepEqual((await services.tasks.script(retried.taskId)).secretParams, ['KEY', 'OTHER'])
  })

  test(`${name} tasks: an idempotency key returns the first task, and another body with it is a conflict`, async (t) => {
    const services = await open(t)
    const id = await host(services)
    const input = { script, target: { hostIds: [id] } }
    const first = await services.tasks.create(input, 'key')
    t.is((await services.tasks.create(input, 'key')).taskId, first.taskId)
    await rejects(t, 'conflict', services.tasks.create({ ...input, timeout: 1 }, 'key'))
    for (const work of [
      services.tasks.get('nosuch'),
      services.tasks.cancel('nosuch'),
      services.tasks.logs('nosuch', {}),
    ])
      await rejects(t, 'not_found', work)
  })
}
