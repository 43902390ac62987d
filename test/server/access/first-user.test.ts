import test from 'ava'
import { createFirstUser } from '../../../src/server/access/passwords.ts'
import { startInsides } from '../../helpers/servers/services.ts'

test('only one of several servers that start on an empty store creates the first user and reports it', async (t) => {
  const { context } = await startInsides(t)
  const { store, passwords, clock } = context
  await store.transact((tx) => tx.remove('users', 1))
  const made = await Promise.all([1, 2, 3].map(() => createFirstUser(store, passwords, clock, undefined)))
  const [told, ...others] = made.filter((one) => one !== null)
  t.is(told?.username, 'admin')
  t.deepEqual(others, [])
  const [admin] = (await store.query('users')).items
  t.true(await passwords.verify(told?.password ?? '', admin?.passwordHash))
})
