import { once } from 'node:events'
import test from 'ava'
import { createHosts } from '../../../src/server/services/hosts.ts'
import { noted } from '../../helpers/agents/noted-link.ts'
import { startInsides } from '../../helpers/servers/services.ts'
import { until } from '../../helpers/until.ts'

test('the link of a removed host is closed before its history is removed, however long that takes', async (t) => {
  const { services, admin, context } = await startInsides(t)
  const { id } = await services.hosts.create({ hostname: 'web1', ip: '192.0.2.1' })
  const at = context.time()
  await context.store.transact(async (tx) => {
    const record = await tx.get('hosts', id)
    if (!record) throw new Error('no host')
    const agent = {
      agentId: 'agent-1',
      agentVersion: 'test',
      tokenHash: 'x',
      tokenUsed: true,
      enrollmentId: null,
      registeredAt: at,
    }
    tx.put('hosts', { ...record, agent })
  })
  const told = new EventTarget()
  let published = false
  context.hints.subscribe('agentRevoked', 'agent-1', () => {
    published = true
  })
  const history = {
    ...context.history,
    forget: () =>
      new Promise<void>((resolve) => {
        told.addEventListener('release', () => resolve(), { once: true })
        told.dispatchEvent(new Event('asked'))
      }),
  }
  const asked = once(told, 'asked')
  const removed = createHosts({ ...context, history }).remove(admin, id)
  await asked
  t.true(published)
  told.dispatchEvent(new Event('release'))
  t.deepEqual(await removed, { id, openEnrollments: [] })
})

for (const { force, title } of [
  { force: false, title: 'a host that gets a task during its removal is not removed' },
  { force: true, title: 'a forced removal ends an execution that starts during it' },
])
  test(title, async (t) => {
    const { services, engine } = await startInsides(t)
    const { id } = await services.hosts.create({ hostname: 'web1', ip: '192.0.2.1' })
    await engine.linked(noted(id).link)
    const look = engine.transactWithOpen
    let taskId = ''
    engine.transactWithOpen = async (hostId, work) => {
      const found = await look(hostId, work)
      engine.transactWithOpen = look
      const target = { hostIds: [id] }
      taskId = (await services.tasks.create({ script: { content: 'true' }, target })).taskId
      return found
    }
    const removed = services.hosts.remove(id, { force })
    if (!force) {
      await t.throwsAsync(removed, { message: /running task/ })
      t.is((await services.hosts.get(id)).id, id)
      return
    }
    t.deepEqual(await removed, { id, openEnrollments: [] })
    await until('the task ends', async () => (await services.tasks.get(taskId)).status !== 'RUNNING')
    t.is((await services.tasks.get(taskId)).results[0]?.error, 'the host was deleted')
  })
