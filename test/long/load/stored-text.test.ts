import test from 'ava'
import { startInsides } from '../../helpers/servers/services.ts'
import { script } from '../../helpers/servers/store-records.ts'

test('S10 the total text stored by all users is bounded', async (t) => {
  const { services, context } = await startInsides(t)
  const content = `#${'x'.repeat(1024 * 1024 - 1)}`
  for (const [at, createdBy] of ['ann', 'bob', 'cid', 'dan', 'eve'].entries())
    await context.store.transact((tx) => {
      for (let id = 1; id <= 51; id++)
        tx.put('scripts', script(at * 100 + id, `${createdBy}${id}`, { content, createdBy }))
    })
  const create = (name: string) => services.scripts.create({ name, type: 'BASH', content })
  await t.throwsAsync(create('one-more'), {
    message: /^Limit reached: scripts and schedules may have 256 MiB of text; /,
  })
  await services.scripts.remove(1)
  await create('one-more')
})

test('the text of running tasks is bounded, small tasks are always accepted, and an ended task frees its text', async (t) => {
  const { services, context } = await startInsides(t)
  const { id } = await services.hosts.create({ hostname: 'web1', ip: '192.0.2.1' })
  const content = `#${'x'.repeat(1024 * 1024 - 1)}`
  const both = (text: string) => ({ script: { content: text }, rollback: { script: { content: text } } })
  const start = (text: string) =>
    services.tasks.create({ ...both(text), target: { hostIds: [id] }, queueSeconds: 600 })
  const { taskId } = await start(content)
  for (let started = 1; started < 63; started++) await start(content)
  await t.throwsAsync(start(content), {
    message: /^Limit reached: running tasks of admin may have 128 MiB of text; /,
  })
  await start('true')
  await services.tasks.cancel(taskId)
  await context.engine.finished(taskId)
  await start(content)
})
