import test from 'ava'
import { startInsides } from '../../helpers/servers/services.ts'

test('S01 an ADMIN whose token ends while a password is hashed creates and changes no user', async (t) => {
  const { services, context } = await startInsides(t)
  const ended = { code: 'unauthenticated' }
  const [session] = await context.store.find('tokens', 'userId', 1)
  const password = 'long enough'
  const { id } = await services.users.create({ username: 'u', password, role: 'VIEWER' })
  const made = services.users.create({ username: 'backdoor', password, role: 'ADMIN' })
  const changed = services.users.update(id, { password, role: 'ADMIN' })
  const refused = Promise.all([t.throwsAsync(made, ended), t.throwsAsync(changed, ended)])
  await context.store.transact((tx) => tx.remove('tokens', session?.id ?? 0))
  await refused
  await t.throwsAsync(services.enrollments.create({}), ended)
  t.deepEqual(
    (await context.store.query('users')).items.map(({ username, role }) => [username, role]),
    [
      ['admin', 'ADMIN'],
      ['u', 'VIEWER'],
    ],
  )
})

test('S01 an ADMIN demoted while a password is hashed creates no user', async (t) => {
  const { services, context } = await startInsides(t)
  const made = services.users.create({ username: 'backdoor', password: 'long enough', role: 'ADMIN' })
  const refused = t.throwsAsync(made, { code: 'forbidden' })
  await context.store.transact(async (tx) => {
    const admin = await tx.get('users', 1)
    if (admin) tx.put('users', { ...admin, role: 'OPERATOR' })
  })
  await refused
  t.is((await context.store.query('users')).items.length, 1)
})
