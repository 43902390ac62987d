import test from 'ava'
import { adminLogin, startInjectedServer, type TestServer } from '../../helpers/servers/server.ts'

const as = (token: string) => ({ authorization: `Bearer ${token}` })
const password = 'long enough'

/** A user with a session; `call` returns status and message. */
async function user(server: TestServer, username: string, role: string, more: object = {}) {
  const { id } = await server.data('POST', '/api/users', { username, password, role, ...more })
  const { token } = await server.data('POST', '/api/auth/login', { username, password })
  return { id: id as number, token: token as string, ...caller(server, token) }
}

function caller(server: TestServer, token: string) {
  return {
    call: async (method: string, path: string, body?: object) => {
      const answer = await server.api(method, path, body, as(token))
      return { status: answer.status, message: answer.body.message, data: answer.body.data }
    },
  }
}

test("A09 an ADMIN's personal access token cannot create or change anything that outlasts it", async (t) => {
  const server = await startInjectedServer(t)
  const { token } = await server.data('POST', '/api/tokens', { name: 'ci' })
  const leaked = caller(server, token)
  const { id } = await server.data('GET', '/api/auth/me')
  const bella = await user(server, 'bella', 'VIEWER')
  const enrollment = await server.data('POST', '/api/enrollment-tokens', {})
  const web1 = await server.enroll('web1')
  const writes: [string, string, object?][] = [
    ['POST', '/api/users', { username: 'back', password: 'a back door', role: 'ADMIN' }],
    ['PATCH', `/api/users/${id}`, { password: 'stolenpassword' }],
    ['PATCH', `/api/users/${bella.id}`, { role: 'ADMIN' }],
    ['PATCH', `/api/users/${bella.id}`, { rights: ['hosts:remove'] }],
    ['PATCH', `/api/users/${bella.id}`, { enabled: false }],
    ['DELETE', `/api/users/${bella.id}`],
    ['POST', '/api/enrollment-tokens', {}],
    ['DELETE', `/api/enrollment-tokens/${enrollment.id}`],
    ['POST', '/api/tokens', { name: 'more', admin: true }],
    ['POST', '/api/agent/register', { agentId: web1.agentId, hostname: 'web1' }],
    ['POST', '/api/agent/register', { agentId: 'more', hostname: 'more' }],
  ]
  for (const [method, path, body] of writes) {
    const { status, message } = await leaked.call(method, path, body)
    t.is(status, 403, `${method} ${path}`)
    t.regex(message, /^you are admin \(ADMIN, by a token as ADMIN\); this requires a session/)
  }
  for (const path of ['/api/users', `/api/users/${id}`, '/api/enrollment-tokens'])
    t.is((await leaked.call('GET', path)).status, 200, 'it can read like its role')
  t.is((await server.api('POST', '/api/auth/login', adminLogin)).status, 200, 'the owner is not locked out')
})

test('A09 a token made with admin: true manages users, enrollment tokens and agents, but grants no rights', async (t) => {
  const server = await startInjectedServer(t)
  const made = await server.data('POST', '/api/tokens', { name: 'inventory', admin: true })
  t.true(made.admin)
  t.deepEqual(
    (await server.data('GET', '/api/tokens')).content.map(({ name, admin }: any) => [name, admin]),
    [['inventory', true]],
  )
  const inventory = caller(server, made.token)
  t.like((await inventory.call('GET', '/api/auth/me')).data.token, { role: 'ADMIN', admin: true })
  const bella = { username: 'bella', password, role: 'VIEWER' }
  const { status, data } = await inventory.call('POST', '/api/users', bella)
  t.is(status, 201)
  t.is((await inventory.call('PATCH', `/api/users/${data.id}`, { role: 'OPERATOR' })).status, 200)
  const rights = await inventory.call('PATCH', `/api/users/${data.id}`, { rights: ['hosts:remove'] })
  t.is(rights.status, 403)
  t.regex(rights.message, /this requires a session: log in$/)
  t.is((await inventory.call('DELETE', `/api/users/${data.id}`)).status, 200)
  const enrollment = await inventory.call('POST', '/api/enrollment-tokens', {})
  t.is(enrollment.status, 201)
  t.is((await inventory.call('DELETE', `/api/enrollment-tokens/${enrollment.data.id}`)).status, 200)
  const agent = { agentId: 'a1', hostname: 'web1' }
  t.is((await inventory.call('POST', '/api/agent/register', agent)).status, 200)
  const weak = await server.api('POST', '/api/tokens', { name: 'x', role: 'OPERATOR', admin: true })
  t.is(weak.status, 400)
  t.deepEqual(weak.body.errors, [
    { field: 'admin', message: 'requires the role ADMIN; this token has OPERATOR' },
  ])
  await server.restart()
  t.is((await inventory.call('POST', '/api/enrollment-tokens', {})).status, 201)
})

test('A16 ADMINs and users with the right hosts:remove remove hosts; the right is granted and revoked at once', async (t) => {
  const server = await startInjectedServer(t)
  const oskar = await user(server, 'oskar', 'OPERATOR')
  const host = async (hostname: string) => {
    const { id } = await server.data('POST', '/api/hosts', { hostname, ip: '10.0.0.1' })
    return `/api/hosts/${id}`
  }
  const refused = await oskar.call('DELETE', await host('web1'))
  t.is(refused.status, 403)
  t.is(refused.message, 'you are oskar (OPERATOR); this requires ADMIN or the right hosts:remove')
  const given = await server.data('PATCH', `/api/users/${oskar.id}`, { rights: ['hosts:remove'] })
  t.deepEqual(given.rights, ['hosts:remove'])
  t.deepEqual((await oskar.call('GET', '/api/auth/me')).data.rights, ['hosts:remove'])
  t.is((await oskar.call('DELETE', await host('web2'))).status, 200)
  // A token has the rights of its owner, unless it was given fewer.
  const own = await oskar.call('POST', '/api/tokens', { name: 'own' })
  t.is((await caller(server, own.data.token).call('DELETE', await host('web3'))).status, 200)
  const less = await oskar.call('POST', '/api/tokens', { name: 'less', role: 'VIEWER' })
  const { status, message } = await caller(server, less.data.token).call('DELETE', await host('web4'))
  t.is(status, 403)
  t.is(
    message,
    'you are oskar (OPERATOR, by a token as VIEWER); this requires ADMIN or the right hosts:remove',
  )
  await server.data('PATCH', `/api/users/${oskar.id}`, { email: 'oskar@example.org' })
  await server.restart()
  t.is((await oskar.call('DELETE', await host('web5'))).status, 200, 'another change leaves it')
  await server.data('PATCH', `/api/users/${oskar.id}`, { rights: [] })
  t.is((await oskar.call('DELETE', await host('web6'))).status, 403)
  t.is((await oskar.call('GET', '/api/auth/me')).status, 200, 'the session continues')
  for (const bad of [['hosts:rename'], ['hosts:remove', 'hosts:remove'], 'hosts:remove', null])
    t.is((await server.api('PATCH', `/api/users/${oskar.id}`, { rights: bad })).status, 400)
})

test('only an ADMIN can set or clear the pinned host key of a host, and that is audited', async (t) => {
  const server = await startInjectedServer(t)
  const oskar = await user(server, 'oskar', 'OPERATOR')
  const { id } = await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '10.0.0.1' })
  const hostKey = `SHA256:${'k'.repeat(43)}`
  for (const wish of [hostKey, null]) {
    const refused = await oskar.call('PATCH', `/api/hosts/${id}`, { hostKey: wish })
    t.is(refused.status, 403)
    t.is(refused.message, 'you are oskar (OPERATOR); this requires ADMIN')
  }
  t.is((await server.data('PATCH', `/api/hosts/${id}`, { hostKey })).hostKey, hostKey)
  t.is((await server.data('PATCH', `/api/hosts/${id}`, { hostKey: null })).hostKey, null)
  const { content } = await server.data('GET', '/api/audit')
  const changes = content.filter(
    ({ action, outcome }: { action: string; outcome: string }) =>
      action === 'host.update' && outcome === 'SUCCESS',
  )
  t.deepEqual(
    changes.map(({ detail }: { detail: { changed: string[]; hostKey?: string } }) => [
      detail.changed,
      detail.hostKey,
    ]),
    [
      [['hostKey'], undefined],
      [['hostKey'], hostKey],
    ],
  )
  const bad = await server.api('PATCH', `/api/hosts/${id}`, { hostKey: 'SHA256:short' })
  t.is(bad.status, 400)
  t.is(bad.body.errors?.[0]?.field, 'hostKey')
})

test('A09 installing an agent, and retrying it, requires an ADMIN with a session or an admin token', async (t) => {
  const server = await startInjectedServer(t)
  const oskar = await user(server, 'oskar', 'OPERATOR')
  const { token } = await server.data('POST', '/api/tokens', { name: 'ci' })
  const { id } = await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '10.0.0.1' })
  const install = { install: {}, target: { hostIds: [id] }, async: false }
  const task = await server.data('POST', '/api/tasks', install)
  t.like(task, { type: 'INSTALL', status: 'FAILED', createdBy: 'admin' })
  t.regex(task.results[0].error, /^web1 has no SSH credentials/)
  for (const { call } of [oskar, caller(server, token)])
    for (const [path, body] of [
      ['/api/tasks', install],
      [`/api/hosts/${id}/install-agent`, {}],
      [`/api/tasks/${task.taskId}/retry`, {}],
    ] as const)
      t.is((await call('POST', path, body)).status, 403, path)
  const again = await server.data('POST', `/api/tasks/${task.taskId}/retry`, { async: false })
  t.like(again, { type: 'INSTALL', status: 'FAILED', retryOf: task.taskId })
  const one = await server.data('POST', `/api/hosts/${id}/install-agent`, { sudo: true, async: false })
  t.like(one, { type: 'INSTALL', hostCount: 1, firstLine: 'install the agent' })
  const { content } = await server.data('GET', '/api/audit?action=host.install&outcome=SUCCESS')
  t.like(content[0], {
    object: { type: 'host', id, name: 'web1' },
    detail: { taskId: one.taskId, type: 'INSTALL', sudo: true },
  })
})

test('an installation accepts no script options, and a task does only one thing', async (t) => {
  const server = await startInjectedServer(t)
  const { id } = await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '10.0.0.1' })
  const target = { hostIds: [id] }
  const faults = async (body: object) => {
    const answer = await server.api('POST', '/api/tasks', { target, ...body })
    t.is(answer.status, 400)
    return answer.body.errors?.map(({ field }) => field)
  }
  t.deepEqual(await faults({ install: {}, params: { A: '1' }, runAs: 'root' }), ['params', 'runAs'])
  t.deepEqual(await faults({ install: {}, script: { content: 'true' } }), ['scriptId'])
  t.deepEqual(await faults({ install: { url: 'ftp://x', fingerprint: 'x' } }), [
    'install.url',
    'install.fingerprint',
  ])
  t.deepEqual(await faults({ install: { user: 'x' } }), ['install.user'])
})
