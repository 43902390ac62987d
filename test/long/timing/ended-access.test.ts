import { EventEmitter, once } from 'node:events'
import test from 'ava'
import { usualCost } from '../../../src/server/access/passwords.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { readEvents } from '../../helpers/clients/events.ts'
import { followEvents } from '../../helpers/clients/follow.ts'
import { startTask } from '../../helpers/clients/tasks.ts'
import { restCaller, startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { ScriptedTerminal } from '../../helpers/terminals/terminal-client.ts'
import { openTerminal, withTerminals } from '../../helpers/terminals/terminals.ts'

/** A user with this role, and a session of that user. */
async function loggedIn(server: TestServer, username: string, role: string) {
  const { id } = await server.data('POST', '/api/users', { username, password: 'long enough', role })
  const { token } = await server.data('POST', '/api/auth/login', { username, password: 'long enough' })
  return { id, token }
}

test('a stream ends within a second after its user, role or token does', async (t) => {
  const server = await startTestServer(t)
  const gone = await loggedIn(server, 'gone', 'VIEWER')
  const demoted = await loggedIn(server, 'demoted', 'OPERATOR')
  const out = await loggedIn(server, 'out', 'VIEWER')
  const personal = await server.data('POST', '/api/tokens', { name: 'ci' })
  const end: [string, string, () => Promise<unknown>][] = [
    ['a deleted user', gone.token, () => server.data('DELETE', `/api/users/${gone.id}`)],
    [
      'another role',
      demoted.token,
      () => server.data('PATCH', `/api/users/${demoted.id}`, { role: 'VIEWER' }),
    ],
    [
      'a logout',
      out.token,
      () => server.api('POST', '/api/auth/logout', undefined, { authorization: `Bearer ${out.token}` }),
    ],
    ['a revoked token', personal.token, () => server.data('DELETE', `/api/tokens/${personal.id}`)],
  ]
  for (const [what, token, act] of end) {
    const events = await readEvents(t, { url: server.url, token })
    await events.next('ready')
    await act()
    const answered = performance.now()
    await events.ended
    t.true(performance.now() - answered < 1000, what)
  }
})

test('a followed log closes within a second after its token ends', async (t) => {
  const server = await startTestServer(t, { passwordCost: usualCost })
  const { hostId } = await server.enroll('web1')
  const taskId = await startTask(server, [hostId])
  const { id } = await server.data('POST', '/api/users', {
    username: 'op',
    password: 'long enough',
    role: 'OPERATOR',
  })
  for (const end of ['logout', 'role', 'delete']) {
    const { token } = await server.data('POST', '/api/auth/login', {
      username: 'op',
      password: 'long enough',
    })
    const headers = { authorization: `Bearer ${token}` }
    const begun = new EventEmitter()
    const url = `${server.url}/api/tasks/${taskId}/logs?follow=true`
    const following = followEvents(url, headers, () => !begun.emit('event'))
    await once(begun, 'event')
    const ended = Date.now()
    if (end === 'logout') await server.api('POST', '/api/auth/logout', undefined, headers)
    if (end === 'role') await server.data('PATCH', `/api/users/${id}`, { role: 'VIEWER' })
    if (end === 'delete') await server.data('DELETE', `/api/users/${id}`)
    await following
    t.true(Date.now() - ended < 1000, end)
  }
})

test('P40 S01 a terminal closes within a second after its login, role, user, agent or host ends', async (t) => {
  const server = await startTestServer(t)
  type Ends = (of: { id: number; hostId: number; own: TestServer['api'] }) => Promise<unknown>
  const ends: Record<string, Ends> = {
    logout: ({ own }) => own('POST', '/api/auth/logout'),
    role: ({ id }) => server.data('PATCH', `/api/users/${id}`, { role: 'VIEWER' }),
    disabled: ({ id }) => server.data('PATCH', `/api/users/${id}`, { enabled: false }),
    agent: ({ hostId }) => server.data('DELETE', `/api/hosts/${hostId}/agent`),
    host: ({ hostId }) => server.data('DELETE', `/api/hosts/${hostId}`),
  }
  for (const [what, end] of Object.entries(ends)) {
    const identity = await server.enroll(what)
    const agent = await ScriptedAgent.link(server, identity, withTerminals)
    const { id, token } = await loggedIn(server, what, 'OPERATOR')
    const own = restCaller(() => ({ url: server.url, token }))
    const { sessionId } = await openTerminal(own, agent, identity.hostId)
    const client = await ScriptedTerminal.attach(server, sessionId, { token })
    await client.next('TERMINAL_ATTACHED')
    const began = performance.now()
    await end({ id, hostId: identity.hostId, own: own.api })
    t.is((await client.closed).code, 4401, what)
    const took = performance.now() - began
    t.true(took < 1_000, `${what}: ${took} ms`)
  }
})
