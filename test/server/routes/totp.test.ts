import { randomBytes } from 'node:crypto'
import test from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { codeAt } from '../../../src/server/access/totp.ts'
import { resetPassword } from '../../../src/server/operations/reset-password.ts'
import { createLogin } from '../../../src/server/services/login.ts'
import { createTotp } from '../../../src/server/services/totp.ts'
import { createKeys, newSigningKey, sealKeyBytes } from '../../../src/server/storage/keys.ts'
import { appShows, enableTotp } from '../../helpers/clients/totp.ts'
import {
  adminLogin,
  adminPassword,
  startInjectedServer,
  type TestServer,
} from '../../helpers/servers/server.ts'
import { startInsides } from '../../helpers/servers/services.ts'

const login = (server: TestServer, code?: string) =>
  server.api('POST', '/api/auth/login', { ...adminLogin, ...(code !== undefined && { code }) })

test('TOTP takes effect once a code is confirmed; then each login needs a code, valid once', async (t) => {
  const server = await startInjectedServer(t)
  const wrong = await server.api('POST', '/api/auth/totp', { currentPassword: 'a guess' })
  t.is(wrong.status, 403)
  const { secret, uri } = await server.data('POST', '/api/auth/totp', { currentPassword: adminPassword })
  t.is(new URL(uri).searchParams.get('secret'), secret)
  t.is((await login(server)).status, 200)
  t.false((await server.data('GET', '/api/auth/me')).totp)
  const refused = await server.api('POST', '/api/auth/totp/confirm', { code: '000000' })
  t.like(refused, { status: 400, body: { errors: [{ field: 'code' }] } })
  const { recoveryCodes } = await server.data('POST', '/api/auth/totp/confirm', {
    code: appShows(secret, -1),
  })
  t.is(recoveryCodes.length, 10)
  t.true((await server.data('GET', '/api/auth/me')).totp)

  t.like(await login(server), { status: 401, body: { errors: [{ field: 'code' }] } })
  t.like(await login(server, '000000'), { status: 401, body: { errors: [{ field: 'code' }] } })
  const code = appShows(secret)
  t.is((await login(server, code)).status, 200)
  t.is((await login(server, code)).status, 401, 'it was used')
  t.is((await login(server, appShows(secret, -1))).status, 401, 'as old as the one that was confirmed')
  const badPassword = await server.api('POST', '/api/auth/login', {
    ...adminLogin,
    password: 'a guess',
    code: appShows(secret, 1),
  })
  t.like(badPassword, { status: 401, body: { message: 'Wrong username or password' } })
  t.is((await login(server, appShows(secret, 1))).status, 200, 'the guess has not used it up')
})

test('a recovery code replaces a code once; neither it nor the secret is stored in plain text', async (t) => {
  const { context, admin } = await startInsides(t)
  const totp = createTotp(context)
  const { secret } = await totp.create(admin, { currentPassword: adminPassword }, '192.0.2.1', 'rsm')
  const { recoveryCodes } = await totp.confirm(admin, { code: appShows(secret) })
  const stored = JSON.stringify(await context.store.query('users'))
  for (const text of [secret, ...recoveryCodes, ...recoveryCodes.map((code) => code.replace('-', ''))])
    t.false(stored.includes(text))
  const [first = '', second = ''] = recoveryCodes
  const service = createLogin(context)
  t.truthy(await service.login({ ...adminLogin, code: first.toLowerCase().replace('-', ' ') }, '192.0.2.1'))
  await t.throwsAsync(service.login({ ...adminLogin, code: first }, '192.0.2.1'), { code: 'unauthenticated' })
  t.truthy(await service.login({ ...adminLogin, code: second }, '192.0.2.1'))
})

test('only one of several simultaneous logins with the same code succeeds', async (t) => {
  const server = await startInjectedServer(t)
  const { secret } = await enableTotp(server, adminPassword)
  const code = appShows(secret)
  const answers = await Promise.all(Array.from({ length: 4 }, () => login(server, code)))
  t.deepEqual(
    answers.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 401, 401, 401],
  )
})

test('twenty wrong codes for a user lock out the next attempt, from any address', async (t) => {
  const { context, admin } = await startInsides(t)
  const totp = createTotp(context)
  const { secret } = await totp.create(admin, { currentPassword: adminPassword }, '192.0.2.1', 'rsm')
  await totp.confirm(admin, { code: appShows(secret) })
  const service = createLogin(context)
  const guess = async (n: number) => {
    const attempt = service.login({ ...adminLogin, code: 'AAAAA-AAAAA' }, `192.0.2.${n + 1}`)
    return (await t.throwsAsync(attempt, { instanceOf: RsmError })).code
  }
  for (let n = 0; n < 20; n++) t.is(await guess(n), 'unauthenticated')
  t.is(await guess(20), 'too_many')
  const right = service.login({ ...adminLogin, code: appShows(secret, 1) }, '192.0.2.99')
  await t.throwsAsync(right, { code: 'too_many' })
})

test('a code recorded while the clock was far ahead locks no one out once the clock is correct', async (t) => {
  const { context, admin } = await startInsides(t)
  const totp = createTotp(context)
  const { secret } = await totp.create(admin, { currentPassword: adminPassword }, '192.0.2.1', 'rsm')
  await totp.confirm(admin, { code: appShows(secret) })
  const year = 365 * 24 * 3600_000
  const ahead = createLogin({
    ...context,
    clock: { ...context.clock, now: () => context.clock.now() + year },
  })
  const then = codeAt(secret, Math.floor((Date.now() + year) / 30_000))
  t.truthy(await ahead.login({ ...adminLogin, code: then }, '192.0.2.1'))
  t.truthy(await createLogin(context).login({ ...adminLogin, code: appShows(secret) }, '192.0.2.1'))
})

test('a user whose TOTP secret was sealed with a lost key cannot log in, and the error names the remedy', async (t) => {
  const { context, admin } = await startInsides(t)
  const totp = createTotp(context)
  const { secret } = await totp.create(admin, { currentPassword: adminPassword }, '192.0.2.1', 'rsm')
  await totp.confirm(admin, { code: appShows(secret) })
  const keys = createKeys(randomBytes(sealKeyBytes), newSigningKey())
  const { store, passwords } = context
  const attempt = createLogin({ ...context, keys }).login(
    { ...adminLogin, code: appShows(secret, 1) },
    '192.0.2.1',
  )
  await t.throwsAsync(attempt, {
    code: 'unauthenticated',
    message: /is lost; .*: rsm server reset-password admin$/,
  })
  const next = { username: 'admin', password: 'a new password' }
  const audit = { append: async () => undefined } as never
  await resetPassword({ store, passwords, audit, at: context.time() }, next)
  t.truthy(await createLogin({ ...context, keys }).login(next, '192.0.2.1'))
})

test('TOTP is removed with a code or by an ADMIN, and enabled only by the user, not with a token', async (t) => {
  const server = await startInjectedServer(t)
  const { secret } = await enableTotp(server, adminPassword)
  const again = await server.api('POST', '/api/auth/totp', { currentPassword: adminPassword })
  t.is(again.status, 409)
  t.is((await server.api('POST', '/api/auth/totp/remove', { code: '000000' })).status, 400)
  t.is((await server.api('POST', '/api/auth/totp/remove', { code: appShows(secret) })).status, 200)
  t.is((await server.api('POST', '/api/auth/totp/remove', { code: appShows(secret, 1) })).status, 409)
  t.is((await login(server)).status, 200)

  const olga = { username: 'olga', password: 'long enough' }
  const { id } = await server.data('POST', '/api/users', { ...olga, role: 'OPERATOR' })
  const { token } = await server.data('POST', '/api/auth/login', olga)
  await enableTotp(server, olga.password, token)
  t.is((await server.api('POST', '/api/auth/login', olga)).status, 401)
  t.is((await server.api('PATCH', `/api/users/${id}`, { totp: true })).status, 400)
  t.false((await server.data('PATCH', `/api/users/${id}`, { totp: false })).totp)
  t.is((await server.api('POST', '/api/auth/login', olga)).status, 200)
  const { token: personal } = await server.data('POST', '/api/tokens', { name: 'ci' })
  const byToken = await server.api(
    'POST',
    '/api/auth/totp',
    { currentPassword: adminPassword },
    { authorization: `Bearer ${personal}` },
  )
  t.is(byToken.status, 403)
})
