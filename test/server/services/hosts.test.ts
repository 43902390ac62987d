import { once } from 'node:events'
import test from 'ava'
import { createHosts } from '../../../src/server/services/hosts.ts'
import { hostsContract } from '../../contracts/hosts.ts'
import { servicesOnStore, startInsides } from '../../helpers/servers/services.ts'

hostsContract(test, 'on the store,', servicesOnStore)

test('the link of a removed host is closed before its history is removed, however long that takes', async (t) => {
  const { services, context } = await startInsides(t)
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
  context.bus.subscribe('agentRevoked', 'agent-1', () => {
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
  const removed = createHosts({ ...context, history }).remove(id)
  await asked
  t.true(published)
  told.dispatchEvent(new Event('release'))
  t.deepEqual(await removed, { id })
})
