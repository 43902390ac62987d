import test from 'ava'
import { usualCost } from '../../../src/server/access/passwords.ts'
import { adminLogin, startInjectedServer } from '../../helpers/servers/server.ts'

test('S02 ten failed logins of a user from one address cause 429 with Retry-After, concurrent or not', async (t) => {
  const server = await startInjectedServer(t, { passwordCost: usualCost })
  const login = (password: string, headers: Record<string, string> = {}) =>
    server.api('POST', '/api/auth/login', { username: 'ADMIN', password }, headers)
  const guesses = await Promise.all(
    Array.from({ length: 16 }, (_, n) => login(`guess ${n}`, { 'x-forwarded-for': `10.0.0.${n}` })),
  )
  t.is(guesses.filter(({ status }) => status === 401).length, 10)
  t.is(guesses.filter(({ status }) => status === 429).length, 6)
  const refused = await login(adminLogin.password)
  t.is(refused.status, 429)
  t.true(Number(refused.headers.get('retry-after')) > 200)
  const other = await server.api('POST', '/api/auth/login', { username: 'someone', password: 'x' })
  t.is(other.status, 401)
})

test('S02 an unknown user and a wrong password give the same answer', async (t) => {
  const server = await startInjectedServer(t, { passwordCost: usualCost })
  const [unknown, wrong] = await Promise.all(
    ['nobody', 'admin'].map((username) =>
      server.api('POST', '/api/auth/login', { username, password: 'nope' }),
    ),
  )
  t.is(unknown?.status, 401)
  t.deepEqual(unknown?.body, wrong?.body)
})

test('many correct logins at once all succeed', async (t) => {
  const server = await startInjectedServer(t, { passwordCost: usualCost })
  const answers = await Promise.all(
    Array.from({ length: 12 }, () => server.api('POST', '/api/auth/login', adminLogin)),
  )
  t.true(answers.every(({ status }) => status === 200))
  const { data } = answers[0]?.body ?? { data: null }
  t.deepEqual(Object.keys(data).sort(), ['expiresAt', 'token', 'user'])
  t.like(data.user, { username: 'admin', role: 'ADMIN' })
})

test('S02 a flood of logins from one address leaves room for others: the excess gets a 429 at once', async (t) => {
  const server = await startInjectedServer(t, { passwordCost: usualCost })
  const login = (username: string) =>
    server.api('POST', '/api/auth/login', { username, password: 'a guess of many' })
  const answers = await Promise.all(Array.from({ length: 60 }, (_, index) => login(`user${index}`)))
  const refused = answers.filter(({ status }) => status === 429)
  t.true(refused.length >= 20, `${refused.length} of 60 were refused`)
  t.true(refused.every(({ headers }) => headers.get('retry-after') !== null))
  t.is((await login('later')).status, 401)
})

test('a user changes the password by giving the current one, and all sessions end', async (t) => {
  const server = await startInjectedServer(t, { passwordCost: usualCost })
  const change = (currentPassword: string, newPassword: string) =>
    server.api('POST', '/api/auth/password', { currentPassword, newPassword })
  t.is((await change('wrong', 'a new password')).status, 403)
  t.is((await change(adminLogin.password, 'short')).status, 400)
  t.is((await change(adminLogin.password, 'a new password')).status, 200)
  t.is((await server.api('GET', '/api/auth/me')).status, 401)
  t.is((await server.api('POST', '/api/auth/login', adminLogin)).status, 401)
  t.is(
    (await server.api('POST', '/api/auth/login', { ...adminLogin, password: 'a new password' })).status,
    200,
  )
})
