import test from 'ava'
import { allPages } from '../../../src/client/http/pages.ts'
import { RsmError } from '../../../src/core/errors.ts'
import { startInsides } from '../../helpers/servers/services.ts'
import { cluster, script } from '../../helpers/servers/store-records.ts'

const mebibyte = 1024 * 1024
const length = (value: unknown) => JSON.stringify(value).length

test('S10 lists of scripts, schedules and tasks omit texts; single records and lists by name include them', async (t) => {
  const { services, context } = await startInsides(t)
  const { id: hostId } = await services.hosts.create({ hostname: 'web1', ip: '192.0.2.1' })
  const text = (bytes: number) => `echo first\n#${'"'.repeat(bytes)}`
  const content = text(mebibyte - 100)
  const params = Object.fromEntries(Array.from({ length: 6 }, (_, at) => [`P${at}`, '"'.repeat(100_000)]))
  const runs = {
    script: { content: text(300_000) },
    verify: { script: { content: text(200_000) }, retries: 2 },
    rollback: { script: { content: text(100_000) } },
    params,
    target: { hostIds: [hostId] },
  }
  const stored = await services.scripts.create({ name: 'long', type: 'BASH', content })
  await services.schedules.create({ name: 'long', everySeconds: 86_400, ...runs })
  const { taskId: running } = await services.tasks.create(runs)
  const { taskId: ended } = await services.tasks.create({ ...runs, queueSeconds: 0 })
  await context.engine.finished(ended)

  const scripts = await services.scripts.list({})
  t.like(scripts.content[0], { name: 'long', bytes: content.length, sha256: stored.sha256, version: 1 })
  const schedules = await services.schedules.list({})
  t.like(schedules.content[0], {
    name: 'long',
    script: { firstLine: 'echo first', bytes: 300_012 },
    verify: { script: { firstLine: 'echo first', bytes: 200_012 }, retries: 2 },
    rollback: { script: { bytes: 100_012 } },
  })
  const tasks = await services.tasks.list({})
  t.deepEqual(
    tasks.content.map(({ taskId, firstLine }) => [taskId, firstLine]),
    [
      [ended, 'echo first'],
      [running, 'echo first'],
    ],
  )
  for (const list of [scripts, schedules, tasks]) t.true(length(list) < 5000, String(length(list)))

  t.deepEqual((await services.scripts.list({ name: 'LONG' })).content, [stored])
  t.like((await services.schedules.list({ name: 'long' })).content[0], {
    params,
    script: runs.script,
    verify: { script: runs.verify.script },
    rollback: runs.rollback,
  })
  for (const taskId of [running, ended]) {
    t.deepEqual((await services.tasks.get(taskId)).params, params)
    t.deepEqual((await services.tasks.script(taskId)).params, params)
  }
  t.deepEqual((await context.store.get('tasks', ended))?.params, {}, 'the store holds no text of ended tasks')
})

test('a page ends at 8 MiB and names the next offset, and all pages together are the list', async (t) => {
  const { services, context } = await startInsides(t)
  const description = 'x'.repeat(mebibyte)
  await context.store.transact((tx) => {
    for (let id = 1; id <= 20; id++) tx.put('clusters', cluster(id, `c${id}`, { description }))
  })
  const first = await services.clusters.list({ size: 500 })
  t.like(first, { page: 0, size: 500, totalElements: 20, totalPages: 1, next: 7 })
  t.true(length(first) < 8 * mebibyte)
  const { content, next } = await services.clusters.list({ size: 500, offset: 14 })
  t.deepEqual([content.map(({ id }) => id), next], [[15, 16, 17, 18, 19, 20], null])
  t.is((await services.clusters.list({ size: 2, page: 3 })).next, 8)
  t.deepEqual(await services.clusters.list({ size: 5, offset: 20 }), {
    content: [],
    page: 4,
    size: 5,
    totalElements: 20,
    totalPages: 4,
    next: null,
  })
  const asked: object[] = []
  const all = await allPages((query) => {
    asked.push(query)
    return services.clusters.list(query)
  }, {})
  t.deepEqual(
    all.content.map(({ id }) => id),
    Array.from({ length: 20 }, (_, at) => at + 1),
  )
  t.deepEqual(asked, [
    { page: 0, size: 500 },
    { offset: 7, size: 500 },
    { offset: 14, size: 500 },
  ])
  const { fields } = await t.throwsAsync<RsmError>(services.clusters.list({ page: 1, offset: 7 }))
  t.deepEqual(fields, [{ field: 'offset', message: 'give page or offset, not both' }])
})

test('a record of more than 8 MiB has a page of its own', async (t) => {
  const { services, context } = await startInsides(t)
  await context.store.transact((tx) => {
    for (const id of [1, 2])
      tx.put('clusters', cluster(id, `c${id}`, { description: 'x'.repeat(9 * mebibyte) }))
  })
  const { content, next } = await services.clusters.list({})
  t.deepEqual([content.map(({ id }) => id), next], [[1], 1])
})

test('the amount of text a user may store is limited, and removals make room', async (t) => {
  const { services, context } = await startInsides(t)
  const content = `#${'x'.repeat(mebibyte - 1)}`
  const put = (from: number, to: number, createdBy: string) =>
    context.store.transact((tx) => {
      for (let id = from; id <= to; id++) tx.put('scripts', script(id, `s${id}`, { content, createdBy }))
    })
  const message = /^Limit reached: scripts and schedules of admin may have 64 MiB of text; /
  const create = () => services.scripts.create({ name: 'one-more', type: 'BASH', content })
  const target = { selector: '@*' }
  const schedule = () =>
    services.schedules.create({ name: 'one-more', everySeconds: 60, script: { content }, target })
  await put(1001, 1063, 'admin')
  for (const more of [create, schedule])
    t.is((await t.throwsAsync<RsmError>(more(), { message })).code, 'conflict')
  await t.throwsAsync(
    services.scripts.update(1001, { description: 'x'.repeat(4096), content: `${content}#` }),
    {
      message: /must have at most/,
    },
  )
  t.is((await services.scripts.update(1001, { content: 'true' })).version, 2, 'less text is always accepted')
  const { id } = await create()
  await t.throwsAsync(services.scripts.update(1001, { content }), { message })
  await services.scripts.remove(id)
  await services.scripts.update(1001, { content })
})
