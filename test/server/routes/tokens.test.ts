import test from 'ava'
import { followEvents } from '../../helpers/clients/follow.ts'
import { running, startTask } from '../../helpers/clients/tasks.ts'
import { adminPassword, startTestServer, type TestServer } from '../../helpers/servers/server.ts'

const as = (token: string) => ({ authorization: `Bearer ${token}` })

async function userToken(server: TestServer, username: string, role: string): Promise<string> {
  const password = 'long enough'
  await server.data('POST', '/api/users', { username, password, role })
  return (await server.data('POST', '/api/auth/login', { username, password })).token
}

test('a personal access token acts as its owner, with its own role', async (t) => {
  const server = await startTestServer(t)
  const { token } = await server.data('POST', '/api/tokens', { name: 'ci', role: 'VIEWER' })
  t.is((await server.api('GET', '/api/hosts', undefined, as(token))).status, 200)
  t.is((await server.api('GET', '/api/users', undefined, as(token))).status, 403)
})

test('a personal access token cannot create or revoke tokens or change the password', async (t) => {
  const server = await startTestServer(t)
  const { id, token } = await server.data('POST', '/api/tokens', { name: 'ci' })
  const body = { currentPassword: adminPassword, newPassword: 'longer still' }
  for (const answer of [
    await server.api('POST', '/api/tokens', { name: 'for ever', expiresInDays: 3660 }, as(token)),
    await server.api('DELETE', `/api/tokens/${id}`, undefined, as(token)),
    await server.api('POST', '/api/auth/password', body, as(token)),
  ]) {
    t.is(answer.status, 403)
    t.regex(answer.body.message, /by a token as ADMIN\); .*: log in/)
  }
  t.is((await server.api('POST', '/api/auth/logout', undefined, as(token))).status, 200)
  t.is((await server.data('GET', '/api/tokens')).totalElements, 0, 'it may end itself')
})

test('guesses of the current password are throttled like logins', async (t) => {
  const server = await startTestServer(t)
  const guess = (currentPassword: string) =>
    server.api('POST', '/api/auth/password', { currentPassword, newPassword: 'longer still' })
  for (let tries = 0; tries < 10; tries++) t.is((await guess('wrong one')).status, 403)
  const refused = await guess(adminPassword)
  t.is(refused.status, 429)
  t.truthy(refused.headers.get('retry-after'))
})

test("a role above the owner's is a 403; an error names an unknown field", async (t) => {
  const server = await startTestServer(t)
  const operator = await userToken(server, 'olga', 'OPERATOR')
  t.is((await server.api('POST', '/api/tokens', { name: 'x', role: 'ADMIN' }, as(operator))).status, 403)
  t.is((await server.api('POST', '/api/tokens', { name: 'x' }, as(operator))).status, 201)
  const bad = await server.api('POST', '/api/tokens', { expiresInDays: 0, days: 3 })
  t.is(bad.status, 400)
  t.deepEqual(bad.body.errors?.map(({ field }) => field).toSorted(), ['days', 'expiresInDays', 'name'])
})

test("another user's token can be neither seen nor revoked", async (t) => {
  const server = await startTestServer(t)
  const { id } = await server.data('POST', '/api/tokens', { name: 'mine' })
  const operator = await userToken(server, 'olga', 'OPERATOR')
  const listed = await server.api('GET', '/api/tokens', undefined, as(operator))
  t.is(listed.body.data.totalElements, 0)
  t.is((await server.api('DELETE', `/api/tokens/${id}`, undefined, as(operator))).status, 404)
  t.is((await server.data('GET', '/api/tokens')).totalElements, 1)
})

test('a session is not a personal access token: it is neither listed nor revoked as one', async (t) => {
  const server = await startTestServer(t)
  t.deepEqual((await server.data('GET', '/api/tokens')).content, [])
  t.is((await server.api('DELETE', '/api/tokens/1')).status, 404)
  t.is((await server.api('GET', '/api/auth/me')).status, 200)
})

test('a revoked token is a 401 at once, and a stream opened with it closes', async (t) => {
  const server = await startTestServer(t)
  const { hostId } = await server.enroll('web1')
  const taskId = await startTask(server, [hostId], { queueSeconds: 60 })
  const { id, token } = await server.data('POST', '/api/tokens', { name: 'ci' })
  const url = `${server.url}/api/tasks/${taskId}/logs?follow=true`
  let opened: () => void = () => undefined
  const open = new Promise<void>((resolve) => {
    opened = resolve
  })
  const stream = followEvents(url, as(token), () => {
    opened()
    return false
  })
  await open
  await server.data('DELETE', `/api/tokens/${id}`)
  await stream
  t.is((await server.api('GET', '/api/auth/me', undefined, as(token))).status, 401)
})

test('a changed password ends personal access tokens as well', async (t) => {
  const server = await startTestServer(t)
  const olga = await userToken(server, 'olga', 'OPERATOR')
  const { token } = (await server.api('POST', '/api/tokens', { name: 'ci' }, as(olga))).body.data
  const body = { currentPassword: 'long enough', newPassword: 'longer still' }
  t.is((await server.api('POST', '/api/auth/password', body, as(olga))).status, 200)
  t.is((await server.api('GET', '/api/auth/me', undefined, as(token))).status, 401)
})

test('tasks are found by host without reading their files on disk', async (t) => {
  const server = await startTestServer(t)
  const { hostId } = await server.enroll('web1')
  const other = await server.data('POST', '/api/hosts', { hostname: 'web2', ip: '10.0.0.2' })
  const first = await startTask(server, [other.id, hostId], { queueSeconds: 60 })
  await startTask(server, [other.id])
  t.is((await running(server, first, 0)).taskId, first)
  const found = await server.data('GET', `/api/tasks?hostId=${hostId}`)
  t.deepEqual(
    found.content.map(({ taskId }: { taskId: string }) => taskId),
    [first],
  )
})
