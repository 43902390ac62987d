import test from 'ava'
import { followEvents } from '../../helpers/clients/follow.ts'
import { adminLogin, startTestServer, type TestServer } from '../../helpers/servers/server.ts'

const as = (token: string) => ({ authorization: `Bearer ${token}` })

async function loggedIn(server: TestServer, userAgent: string, login = adminLogin): Promise<string> {
  const answer = await server.api('POST', '/api/auth/login', login, { 'user-agent': userAgent })
  return answer.body.data.token
}

const listed = async (server: TestServer, token = server.token) =>
  (await server.api('GET', '/api/auth/sessions', undefined, as(token))).body.data.content

test('a user sees their own logins with address, client and expiry', async (t) => {
  const server = await startTestServer(t)
  await loggedIn(server, 'laptop '.repeat(50))
  const all = await listed(server)
  t.is(all.length, 2)
  const laptop = all.find(({ current }: { current: boolean }) => !current)
  t.like(laptop, { address: '127.0.0.1', userAgent: 'laptop '.repeat(50).slice(0, 200) })
  t.is(Date.parse(laptop.expiresAt) - Date.parse(laptop.lastUsedAt), 12 * 3600_000)
  t.false('tokenHash' in laptop)
  await server.data('POST', '/api/users', { username: 'olga', password: 'long enough', role: 'VIEWER' })
  const olga = await loggedIn(server, 'phone', { username: 'olga', password: 'long enough' })
  t.deepEqual(
    (await listed(server, olga)).map(({ userAgent }: { userAgent: string }) => userAgent),
    ['phone'],
  )
  const { token } = await server.data('POST', '/api/tokens', { name: 'ci' })
  t.is((await listed(server, token)).length, 2, 'a token of the user lists them, and is not listed')
})

test('streams of a session close when its owner ends it; other sessions continue', async (t) => {
  const server = await startTestServer(t)
  const lost = await loggedIn(server, 'lost')
  const stream = followEvents(`${server.url}/api/events`, as(lost), () => false)
  const { id } = (await listed(server)).find(({ current }: { current: boolean }) => !current)
  t.deepEqual(await server.data('DELETE', `/api/auth/sessions/${id}`), { id })
  await stream
  t.is((await server.api('GET', '/api/auth/me', undefined, as(lost))).status, 401)
  t.is((await server.api('GET', '/api/auth/me')).status, 200)
  const again = await server.api('DELETE', `/api/auth/sessions/${id}`)
  t.like(again, { status: 404, body: { message: `no such session: ${id}` } })
})

test('foreign sessions, tokens and invalid ids are not found, and a token cannot end sessions', async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/users', { username: 'olga', password: 'long enough', role: 'OPERATOR' })
  const olga = await loggedIn(server, 'phone', { username: 'olga', password: 'long enough' })
  const [hers] = await listed(server, olga)
  const { id: tokenId, token } = await server.data('POST', '/api/tokens', { name: 'ci' })
  for (const id of [hers.id, tokenId, 999_999, 'x', '-1', '1e3', '1.0', '01'])
    t.is((await server.api('DELETE', `/api/auth/sessions/${id}`)).status, 404, String(id))
  const refused = await server.api('DELETE', '/api/auth/sessions', undefined, as(token))
  t.is(refused.status, 403)
  t.is((await server.api('GET', '/api/auth/me', undefined, as(olga))).status, 200)
  t.deepEqual(await server.data('DELETE', '/api/auth/sessions'), { ended: 0 })
})

test('all other sessions end at once, and tokens stay', async (t) => {
  const server = await startTestServer(t)
  const others = [await loggedIn(server, 'a'), await loggedIn(server, 'b')]
  const { token } = await server.data('POST', '/api/tokens', { name: 'ci' })
  t.deepEqual(await server.data('DELETE', '/api/auth/sessions'), { ended: 2 })
  for (const other of others)
    t.is((await server.api('GET', '/api/auth/me', undefined, as(other))).status, 401)
  t.is((await server.api('GET', '/api/auth/me', undefined, as(token))).status, 200)
  t.is((await listed(server)).length, 1)
})
