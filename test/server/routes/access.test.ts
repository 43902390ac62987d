import { once } from 'node:events'
import { request } from 'node:http'
import test from 'ava'
import { operationsOfTheApp } from '../../helpers/api/operations.ts'
import { startInjectedServer, type TestServer } from '../../helpers/servers/server.ts'

type Right =
  | 'open'
  | 'anyUser'
  | 'session'
  | 'read'
  | 'change'
  | 'removeHosts'
  | 'administer'
  | 'lasting'
  | 'adminSession'
  | 'agent'
  | 'register'

/** The right that each route requires (contract §2). `change` includes execute: the same roles have both. */
const table: Record<string, Right> = {
  'GET /api/health': 'open',
  'GET /api/ready': 'open',
  'GET /api/server': 'read',
  'GET /api/server/status': 'read',
  'GET /api/servers': 'read',
  'GET /api/server/backup': 'adminSession',
  'GET /metrics': 'anyUser',
  'GET /api/openapi.json': 'open',
  'GET /docs': 'open',
  'GET /docs/:file': 'open',
  'GET /': 'open',
  'GET /console/:file': 'open',
  'GET /install.sh': 'open',
  'GET /dl/SHA256SUMS': 'open',
  'GET /dl/:file': 'open',
  'POST /api/auth/login': 'open',
  'POST /api/auth/logout': 'anyUser',
  'GET /api/auth/me': 'anyUser',
  'POST /api/auth/password': 'session',
  'GET /api/auth/sessions': 'anyUser',
  'POST /api/auth/totp': 'session',
  'POST /api/auth/totp/confirm': 'session',
  'POST /api/auth/totp/remove': 'session',
  'DELETE /api/auth/sessions': 'session',
  'DELETE /api/auth/sessions/:id': 'session',
  'GET /api/users': 'administer',
  'POST /api/users': 'lasting',
  'GET /api/users/:id': 'administer',
  'PATCH /api/users/:id': 'lasting',
  'DELETE /api/users/:id': 'lasting',
  'GET /api/tokens': 'anyUser',
  'POST /api/tokens': 'session',
  'DELETE /api/tokens/:id': 'session',
  'GET /api/hosts': 'read',
  'POST /api/hosts': 'change',
  'POST /api/hosts/select': 'read',
  'GET /api/hosts/:id': 'read',
  'GET /api/hosts/:id/metrics': 'read',
  'PATCH /api/hosts/:id': 'change',
  'DELETE /api/hosts/:id': 'removeHosts',
  'POST /api/hosts/:id/install-agent': 'lasting',
  'DELETE /api/hosts/:id/agent': 'administer',
  'GET /api/enrollment-tokens': 'administer',
  'POST /api/enrollment-tokens': 'lasting',
  'DELETE /api/enrollment-tokens/:id': 'lasting',
  'GET /api/scripts': 'read',
  'POST /api/scripts': 'change',
  'GET /api/scripts/:id': 'read',
  'PATCH /api/scripts/:id': 'change',
  'DELETE /api/scripts/:id': 'change',
  'GET /api/scripts/:id/versions': 'read',
  'GET /api/scripts/:id/versions/:version': 'read',
  'POST /api/scripts/:id/execute': 'change',
  'GET /api/webhooks': 'administer',
  'POST /api/webhooks': 'lasting',
  'GET /api/webhooks/:id': 'administer',
  'PATCH /api/webhooks/:id': 'lasting',
  'DELETE /api/webhooks/:id': 'lasting',
  'POST /api/webhooks/:id/test': 'lasting',
  'GET /api/webhooks/:id/deliveries': 'administer',
  'GET /api/clusters': 'read',
  'POST /api/clusters': 'change',
  'GET /api/clusters/:id': 'read',
  'PATCH /api/clusters/:id': 'change',
  'DELETE /api/clusters/:id': 'change',
  'POST /api/clusters/:id/execute': 'change',
  'GET /api/schedules': 'read',
  'POST /api/schedules': 'change',
  'GET /api/schedules/:id': 'read',
  'PATCH /api/schedules/:id': 'change',
  'DELETE /api/schedules/:id': 'change',
  'POST /api/schedules/:id/run': 'change',
  'GET /api/schedules/:id/next': 'read',
  'GET /api/schedules/:id/history': 'read',
  'GET /api/tasks': 'read',
  'POST /api/tasks': 'change',
  'GET /api/tasks/:taskId': 'read',
  'GET /api/tasks/:taskId/script': 'read',
  'GET /api/tasks/:taskId/logs': 'read',
  'GET /api/tasks/:taskId/files': 'change',
  'GET /api/tasks/:taskId/files/:hostId': 'change',
  'GET /api/files': 'change',
  'POST /api/files': 'change',
  'DELETE /api/files/:fileId': 'change',
  'GET /api/files/:fileId': 'change',
  'PUT /api/files/:fileId': 'change',
  'POST /api/tasks/:taskId/cancel': 'change',
  'POST /api/tasks/:taskId/retry': 'change',
  'GET /api/terminals': 'change',
  'POST /api/terminals': 'change',
  'GET /api/terminals/:sessionId': 'change',
  'DELETE /api/terminals/:sessionId': 'change',
  'POST /api/terminals/:sessionId/ticket': 'change',
  'GET /api/terminals/:sessionId/recording': 'change',
  'GET /api/events': 'read',
  'POST /api/agent/register': 'register',
  'POST /api/agent/heartbeat': 'agent',
  'POST /api/agent/metrics': 'agent',
  'GET /api/agent/config': 'agent',
  'GET /api/agent/files/:fileId': 'agent',
  'PUT /api/agent/tasks/:taskId/file': 'agent',
  'GET /api/audit': 'administer',
}

/** Callers without any access: their tokens are invalid, expired or revoked. */
const strangers = [
  'nobody',
  'junk',
  'revoked',
  'expired',
  'of a disabled user',
  'of a deleted user',
  'of a revoked agent',
  'expired enrollment',
] as const
type Caller =
  | (typeof strangers)[number]
  | 'VIEWER'
  | 'OPERATOR'
  | 'ADMIN'
  | 'OPERATOR who removes hosts'
  | "ADMIN's token"
  | "ADMIN's token for administration"
  | "ADMIN's token as VIEWER"
  | 'token as VIEWER of who removes hosts'
  | 'agent'
  | 'another agent'
  | 'enrollment'

const viewers: Caller[] = ['VIEWER', "ADMIN's token as VIEWER", 'token as VIEWER of who removes hosts']
const operators: Caller[] = ['OPERATOR', 'OPERATOR who removes hosts']
const lasting: Caller[] = ['ADMIN', "ADMIN's token for administration"]
const admins: Caller[] = [...lasting, "ADMIN's token"]
const agents: Caller[] = ['agent', 'another agent']
/** The callers that have each right, apart from callers without access. */
const holders: Record<Exclude<Right, 'open'>, Caller[]> = {
  anyUser: [...viewers, ...operators, ...admins],
  session: ['VIEWER', ...operators, 'ADMIN'],
  read: [...viewers, ...operators, ...admins],
  change: [...operators, ...admins],
  removeHosts: ['OPERATOR who removes hosts', ...admins],
  administer: admins,
  lasting,
  adminSession: ['ADMIN'],
  agent: agents,
  register: [...lasting, ...agents, 'enrollment'],
}
const takesLasting =
  /this requires (ADMIN|a session \(log in\), or a token made with `admin: true` \(rsm tokens add --admin\))$/
/** The reason that a refusal gives a user who lacks the right (contract §2). */
const takes: Partial<Record<Right, RegExp>> = {
  session: /this requires a session: log in$/,
  change: /this requires OPERATOR$/,
  removeHosts: /this requires ADMIN or the right hosts:remove$/,
  administer: /this requires ADMIN$/,
  lasting: takesLasting,
  adminSession: /this requires (ADMIN|a session: log in)$/,
  agent: /this requires an agent token$/,
  register: takesLasting,
}
const allowed = (right: Right, caller: Caller) => right === 'open' || holders[right].includes(caller)

async function tokens(server: TestServer): Promise<Record<Caller, string | null>> {
  const login = async (username: string, password: string) =>
    (await server.data('POST', '/api/auth/login', { username, password })).token as string
  const user = async (role: string, username = `a-${role.toLowerCase()}`, rights: string[] = []) => {
    await server.data('POST', '/api/users', { username, password: 'long enough', role, rights })
    return login(username, 'long enough')
  }
  const revoked = await user('ADMIN', 'revoked')
  await server.api('POST', '/api/auth/logout', undefined, { authorization: `Bearer ${revoked}` })
  const idOf = async (username: string) =>
    (await server.data('GET', `/api/users?search=${username}`)).content[0].id as number
  const disabled = await user('ADMIN', 'disabled')
  await server.data('PATCH', `/api/users/${await idOf('disabled')}`, { enabled: false })
  const deleted = await user('ADMIN', 'deleted')
  await server.data('DELETE', `/api/users/${await idOf('deleted')}`)
  const formerAgent = await server.enroll('web3')
  await server.data('DELETE', `/api/hosts/${formerAgent.hostId}/agent`)
  const personal = async (input: object, owner = server.token) => {
    const headers = { authorization: `Bearer ${owner}` }
    return (await server.api('POST', '/api/tokens', { name: 'x', ...input }, headers)).body.data
      .token as string
  }
  const remover = await user('OPERATOR', 'remover', ['hosts:remove'])
  return {
    expired: await personal({ expiresInDays: 1e-9 }),
    'of a disabled user': disabled,
    'of a deleted user': deleted,
    'of a revoked agent': formerAgent.token,
    'expired enrollment': (await server.data('POST', '/api/enrollment-tokens', { expiresInHours: 1e-9 }))
      .token,
    'OPERATOR who removes hosts': remover,
    'token as VIEWER of who removes hosts': await personal({ role: 'VIEWER' }, remover),
    "ADMIN's token": await personal({}),
    "ADMIN's token for administration": await personal({ admin: true }),
    "ADMIN's token as VIEWER": await personal({ role: 'VIEWER' }),
    'another agent': (await server.enroll('web2')).token,
    nobody: null,
    junk: 'rsm_ses_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
    revoked,
    VIEWER: await user('VIEWER'),
    OPERATOR: await user('OPERATOR'),
    ADMIN: server.token,
    agent: (await server.enroll('web1')).token,
    enrollment: (await server.data('POST', '/api/enrollment-tokens', { maxUses: 100 })).token,
  }
}

test('S01 every route of the application has a row in the table, and every row a route', (t) => {
  const routes = operationsOfTheApp().map(({ method, url }) => `${method} ${url}`)
  t.deepEqual(routes.sort(), Object.keys(table).sort())
})

test('P04 S01 every route answers every kind of caller as the table says, before it checks path or body', async (t) => {
  const server = await startInjectedServer(t)
  const callers = await tokens(server)
  // Last, because it ends the session of the caller.
  const rows = Object.entries(table).sort(
    ([a], [b]) => Number(a.includes('logout')) - Number(b.includes('logout')),
  )
  for (const [caller, token] of Object.entries(callers) as [Caller, string | null][])
    for (const [route, right] of rows) {
      const [method = '', path = ''] = route.split(' ')
      // An accepted stream would not end, so an invalid query makes it fail after authorization.
      const query = path === '/api/events' ? '?after=nothing' : ''
      const url = path.replace(':id', '999').replace(/:(taskId|sessionId)/, 'nosuch') + query
      const { status, body } = await server.api(method, url, method === 'GET' ? undefined : '{"no":1', {
        authorization: token === null ? '' : `Bearer ${token}`,
      })
      const known = !(strangers as readonly Caller[]).includes(caller)
      const wanted = allowed(right, caller) ? 'let in' : known ? 403 : 401
      t.is(
        status === 401 || status === 403 ? status : 'let in',
        wanted,
        `${route} by ${caller} gave ${status}`,
      )
      t.true(status < 500, `${route} by ${caller} gave ${status}`)
      const isUser = known && !['agent', 'another agent', 'enrollment'].includes(caller)
      if (wanted === 403 && isUser) {
        t.regex(body.message, /^you are [\w-]+ \((VIEWER|OPERATOR|ADMIN)(, by a token as [A-Z]+)?\); /)
        t.regex(body.message, takes[right] ?? /^$/, `${route} by ${caller}`)
      }
    }
})

test('P04 S01 an agent speaks only for itself: another agentId in body or query is a 403', async (t) => {
  const server = await startInjectedServer(t)
  const first = await server.enroll('web1')
  const second = await server.enroll('web2')
  const headers = { authorization: `Bearer ${second.token}` }
  const { agentId } = first
  const metrics = {
    timestamp: new Date().toISOString(),
    cpu: { usagePercent: 1, loadAvg1m: 0, loadAvg5m: 0, loadAvg15m: 0 },
    memory: { totalMB: 1, usedMB: 1, availableMB: 1, usagePercent: 99 },
    disk: [],
    network: { rxBytesPerSec: 0, txBytesPerSec: 0, connections: 0 },
  }
  t.is(
    (await server.api('POST', '/api/agent/heartbeat', { agentId, status: 'UNHEALTHY' }, headers)).status,
    403,
  )
  t.is((await server.api('POST', '/api/agent/metrics', { agentId, ...metrics }, headers)).status, 403)
  t.is((await server.api('GET', `/api/agent/config?agentId=${agentId}`, undefined, headers)).status, 403)
  t.is((await server.data('GET', `/api/hosts/${first.hostId}`)).status, 'ONLINE')
})

test("tokens end at once when the user's role or password changes, or the user is disabled or removed", async (t) => {
  const server = await startInjectedServer(t)
  const changes: [string, string, object | undefined][] = [
    ['role', 'PATCH', { role: 'VIEWER' }],
    ['password', 'PATCH', { password: 'another one' }],
    ['enabled', 'PATCH', { enabled: false }],
    ['gone', 'DELETE', undefined],
  ]
  for (const [username, method, body] of changes) {
    const { id } = await server.data('POST', '/api/users', {
      username,
      password: 'long enough',
      role: 'OPERATOR',
    })
    const { token } = await server.data('POST', '/api/auth/login', { username, password: 'long enough' })
    const me = () => server.api('GET', '/api/auth/me', undefined, { authorization: `Bearer ${token}` })
    t.is((await me()).status, 200)
    await server.data(method, `/api/users/${id}`, body)
    t.is((await me()).status, 401, username)
  }
})

/** Sends the first byte of a body; resolves once the server has authorized the caller and waits for the rest. */
async function begin(server: TestServer, token: string, method: string, path: string, body: object) {
  const text = JSON.stringify(body)
  const asked = request(`${server.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
      expect: '100-continue',
    },
  })
  const answered = once(asked, 'response')
  asked.flushHeaders()
  await once(asked, 'continue')
  asked.write(text.slice(0, 1))
  return async function finish(): Promise<number> {
    asked.end(text.slice(1))
    const [response] = await answered
    response.resume()
    await once(response, 'end')
    return response.statusCode
  }
}

test('S01 a right revoked while the body is in transit no longer applies once the body has arrived', async (t) => {
  const server = await startInjectedServer(t)
  const user = async (username: string, role: string, rights: string[] = []) => {
    const password = 'long enough'
    const { id } = await server.data('POST', '/api/users', { username, password, role, rights })
    return {
      id,
      token: (await server.data('POST', '/api/auth/login', { username, password })).token as string,
    }
  }
  const admin = await user('leaving', 'ADMIN')
  const operator = await user('demoted', 'OPERATOR', ['hosts:remove'])
  const agent = await server.enroll('web1')
  const spare = await server.enroll('web2')
  const { token: personal } = await server.data('POST', '/api/tokens', { name: 'x', admin: true })
  const backdoor = { username: 'backdoor', password: 'long enough', role: 'ADMIN' }
  const task = { script: { content: 'true' }, target: { hostIds: [spare.hostId] }, queueSeconds: 0 }
  const pending = {
    'a user by a deleted ADMIN': await begin(server, admin.token, 'POST', '/api/users', backdoor),
    'a user by a revoked token': await begin(server, personal, 'POST', '/api/users', backdoor),
    'a faulty body by a deleted ADMIN': await begin(server, admin.token, 'POST', '/api/users', { no: 1 }),
    'a task by a demoted OPERATOR': await begin(server, operator.token, 'POST', '/api/tasks', task),
    'a removal by a demoted OPERATOR': await begin(
      server,
      operator.token,
      'DELETE',
      `/api/hosts/${spare.hostId}`,
      { any: 1 },
    ),
    'a registration by a revoked agent': await begin(server, agent.token, 'POST', '/api/agent/register', {
      agentId: agent.agentId,
      hostname: 'web1',
    }),
  }
  await server.data('DELETE', `/api/users/${admin.id}`)
  await server.data('PATCH', `/api/users/${operator.id}`, { role: 'VIEWER' })
  await server.data('DELETE', `/api/hosts/${agent.hostId}/agent`)
  const [{ id: tokenId }] = (await server.data('GET', '/api/tokens')).content
  await server.data('DELETE', `/api/tokens/${tokenId}`)
  for (const [what, finish] of Object.entries(pending)) t.is(await finish(), 401, what)
  t.is((await server.data('GET', '/api/users?search=backdoor')).totalElements, 0)
  t.is((await server.data('GET', '/api/tasks')).totalElements, 0)
  t.is((await server.data('GET', '/api/hosts')).totalElements, 2)
})
