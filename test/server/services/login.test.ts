import { EventEmitter, once } from 'node:events'
import test from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import type { Passwords } from '../../../src/server/access/passwords.ts'
import { createLogin } from '../../../src/server/services/login.ts'
import { adminPassword } from '../../helpers/servers/server.ts'
import { startInsides } from '../../helpers/servers/services.ts'

/** Addresses that belong to one attacker, and one that belongs to another client. */
const guessers: readonly (readonly [who: string, own: (n: number) => string, other: string])[] = [
  ['an IPv4 address', () => '192.0.2.1', '192.0.2.2'],
  [
    'an IPv4 address over a socket of IPv6',
    (n) => (n % 2 ? '::ffff:192.0.2.1' : '192.0.2.1'),
    '::ffff:192.0.2.2',
  ],
  ['a /64 of IPv6', (n) => `fd77::${n.toString(16)}:2`, 'fd77:0:0:1::2'],
  ['a link-local /64', (n) => `fe80::${n + 1}%eth0`, 'fe81::1%eth0'],
]
for (const [who, own, other] of guessers)
  test(`A11 ten wrong passwords lock out ${who}, and no others`, async (t) => {
    const { context } = await startInsides(t)
    const login = createLogin(context)
    const guess = async (address: string) => {
      const error = await t.throwsAsync(login.login({ username: 'admin', password: 'a guess' }, address), {
        instanceOf: RsmError,
      })
      return error.code
    }
    for (let n = 0; n < 10; n++) t.is(await guess(own(n)), 'unauthenticated', own(n))
    t.is(await guess(own(10)), 'too_many')
    t.is(await guess(other), 'unauthenticated')
  })

test("a password set by an administrator while the user's own change is being hashed wins", async (t) => {
  const { context, services } = await startInsides(t)
  const [token] = (await context.store.query('tokens')).items
  const hashing = new EventEmitter()
  const passwords: Passwords = {
    ...context.passwords,
    queueLength: 0,
    async hash(password) {
      const isReset = once(hashing, 'reset')
      hashing.emit('begun')
      await isReset
      return context.passwords.hash(password)
    },
  }
  const user = { type: 'user', id: 1, username: 'admin', role: 'ADMIN' } as const
  const standing = { tokenKind: 'session', ownerRole: 'ADMIN', rights: [], mayOutlast: true } as const
  const caller = { ...user, ...standing, tokenId: token?.id ?? 0, expiresAt: 0, idleAt: 0 }
  const begun = once(hashing, 'begun')
  const own = createLogin({ ...context, passwords }).changePassword(
    caller,
    adminPassword,
    'of the thief',
    '::1',
  )
  await begun
  await services.users.update(1, { password: 'of the admin' })
  hashing.emit('reset')
  await t.throwsAsync(own, { code: 'unauthenticated', message: /has ended/ })
  const login = createLogin(context)
  await t.notThrowsAsync(login.login({ username: 'admin', password: 'of the admin' }, '::1'))
})
