import test from 'ava'
import { register } from '../../../src/server/services/registration.ts'
import { startInsides } from '../../helpers/servers/services.ts'

test("S01 of an agent's registrations with one token only the first counts", async (t) => {
  const { context } = await startInsides(t)
  const input = { agentId: 'a1', hostname: 'web1' }
  const enrolled = { type: 'enrollment', id: 1 } as const
  await context.store.transact((tx) =>
    tx.put('enrollments', {
      id: tx.nextId('enrollments'),
      name: null,
      tokenHash: 'e',
      maxUses: 1,
      uses: 0,
      tags: {},
      clusterId: null,
      hostId: null,
      createdBy: 'admin',
      createdAt: context.time(),
      expiresAt: context.time(),
    }),
  )
  const { hostId } = await register(context, enrolled, input, '127.0.0.1', 'first')
  const agent = { type: 'agent', hostId, agentId: 'a1', tokenHash: 'first' } as const
  await register(context, agent, input, '127.0.0.1', 'second')
  await t.throwsAsync(register(context, agent, input, '127.0.0.1', 'third'), { code: 'unauthenticated' })
  t.is((await context.store.get('hosts', hostId))?.agent?.tokenHash, 'second')
})
