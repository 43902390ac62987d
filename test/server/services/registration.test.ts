import test from 'ava'
import { register } from '../../../src/server/services/registration.ts'
import { standing } from '../../../src/server/storage/ports/caller.ts'
import { hostFactsContract } from '../../contracts/host-facts.ts'
import { startInsides } from '../../helpers/servers/services.ts'

test("S01 only the first of an agent's registrations with one token counts", async (t) => {
  const { context } = await startInsides(t)
  const input = { agentId: 'a1', hostname: 'web1' }
  const enrolled = { type: 'enrollment', id: 1 } as const
  await context.store.transact(async (tx) =>
    tx.put('enrollments', {
      id: await tx.nextId('enrollments'),
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

test('A09 a registration by a user is authorized again when it is written', async (t) => {
  const { context } = await startInsides(t)
  const { store } = context
  const [session] = (await store.query('tokens')).items
  const admin = await store.get('users', 1)
  if (!session || !admin) throw new Error('its first user has no session')
  const at = context.time()
  const input = { agentId: 'a1', hostname: 'web1' }
  const by = (tokenId: number) =>
    register(
      context,
      {
        ...standing(session, admin),
        type: 'user',
        id: 1,
        tokenId,
        expiresAt: Number.POSITIVE_INFINITY,
        idleAt: Number.POSITIVE_INFINITY,
      },
      input,
      '127.0.0.1',
      'agent',
    )
  const made = (isLasting: boolean) =>
    store.transact(async (tx) => {
      const id = await tx.nextId('tokens')
      const token = { ...session, id, kind: 'personal', tokenHash: `token-${id}`, expiresAt: at } as const
      tx.put('tokens', isLasting ? { ...token, admin: true } : token)
      return id
    })
  const [plain, lasting] = [await made(false), await made(true)]
  await t.throwsAsync(by(plain ?? 0), { code: 'forbidden' })
  t.is((await by(lasting ?? 0)).created, true)
  await store.transact((tx) => tx.remove('tokens', lasting ?? 0))
  await t.throwsAsync(by(lasting ?? 0), { code: 'unauthenticated' })
})

hostFactsContract(test, 'in files,', startInsides)
