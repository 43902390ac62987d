import type { TestFn } from 'ava'
import { rejects } from './rejects.ts'
import type { ServicesOf } from './services-of.ts'

/** Suite for every implementation of UserService (contract §2, §3). The store begins with one ADMIN, `admin`. */
export function usersContract(test: TestFn, name: string, open: ServicesOf): void {
  const password = 'long enough'

  test(`${name} users: neither password nor hash is ever shown`, async (t) => {
    const { users } = await open(t)
    const user = await users.create({ username: 'ann', password, role: 'OPERATOR', email: 'a@b' })
    t.deepEqual(Object.keys(user).sort(), [
      'createdAt',
      'email',
      'enabled',
      'id',
      'lastLoginAt',
      'rights',
      'role',
      'totp',
      'updatedAt',
      'username',
    ])
    t.like(user, { username: 'ann', role: 'OPERATOR', email: 'a@b', enabled: true, lastLoginAt: null })
    t.deepEqual(await users.get(user.id), user)
    t.is((await users.list({})).totalElements, 2)
    t.deepEqual((await users.list({ search: 'A@B' })).content, [user])
  })

  test(`${name} users: a patch changes the fields that it names; null removes the address`, async (t) => {
    const { users } = await open(t)
    const { id } = await users.create({ username: 'ann', password, role: 'OPERATOR', email: 'a@b' })
    t.like(await users.update(id, { email: null, role: 'VIEWER' }), {
      email: null,
      role: 'VIEWER',
      username: 'ann',
    })
    await rejects(t, 'conflict', users.update(id, { username: 'ADMIN' }))
    await rejects(t, 'conflict', users.create({ username: 'Ann', password, role: 'VIEWER' }))
    await users.remove(id)
    for (const work of [users.get(id), users.update(id, {}), users.remove(id)])
      await rejects(t, 'not_found', work)
  })

  test(`${name} users: the last enabled ADMIN cannot be deleted, disabled or demoted`, async (t) => {
    const { users } = await open(t)
    const [admin] = (await users.list({})).content
    const id = admin?.id ?? 0
    const disabled = await users.create({ username: 'other', password, role: 'ADMIN' })
    await users.update(disabled.id, { enabled: false })
    await rejects(t, 'conflict', users.remove(id))
    await rejects(t, 'conflict', users.update(id, { role: 'OPERATOR' }))
    await rejects(t, 'conflict', users.update(id, { enabled: false }))
    t.like(await users.update(id, { email: 'x@y' }), { role: 'ADMIN', enabled: true })
    await users.update(disabled.id, { enabled: true })
    const both = await Promise.allSettled([
      users.remove(disabled.id),
      users.update(disabled.id, { role: 'VIEWER' }),
    ])
    t.true(both.some(({ status }) => status === 'fulfilled'))
    await rejects(t, 'conflict', users.update(id, { role: 'VIEWER' }))
  })
}
