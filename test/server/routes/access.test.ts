import test from 'ava'
import { buildApp } from '../../../src/server/app.ts'
import { registerRoutes } from '../../../src/server/routes/routes.ts'
import { startTestServer, type TestServer } from '../../helpers/server.ts'

type Right = 'open' | 'anyUser' | 'read' | 'change' | 'administer' | 'agent' | 'register'

/** Who may call what (contract §2). `change` stands for execute too: the same roles have both. */
const table: Record<string, Right> = {
  'GET /api/health': 'open',
  'GET /api/ready': 'open',
  'GET /metrics': 'anyUser',
  'POST /api/auth/login': 'open',
  'POST /api/auth/logout': 'anyUser',
  'GET /api/auth/me': 'anyUser',
  'POST /api/auth/password': 'anyUser',
  'GET /api/users': 'administer',
  'POST /api/users': 'administer',
  'GET /api/users/:id': 'administer',
  'PATCH /api/users/:id': 'administer',
  'DELETE /api/users/:id': 'administer',
  'GET /api/tokens': 'anyUser',
  'POST /api/tokens': 'anyUser',
  'DELETE /api/tokens/:id': 'anyUser',
  'GET /api/hosts': 'read',
  'POST /api/hosts': 'change',
  'GET /api/hosts/:id': 'read',
  'PATCH /api/hosts/:id': 'change',
  'DELETE /api/hosts/:id': 'change',
  'DELETE /api/hosts/:id/agent': 'administer',
  'GET /api/enrollment-tokens': 'administer',
  'POST /api/enrollment-tokens': 'administer',
  'DELETE /api/enrollment-tokens/:id': 'administer',
  'GET /api/scripts': 'read',
  'POST /api/scripts': 'change',
  'GET /api/scripts/:id': 'read',
  'PATCH /api/scripts/:id': 'change',
  'DELETE /api/scripts/:id': 'change',
  'GET /api/scripts/:id/versions': 'read',
  'GET /api/scripts/:id/versions/:version': 'read',
  'POST /api/scripts/:id/execute': 'change',
  'GET /api/clusters': 'read',
  'POST /api/clusters': 'change',
  'GET /api/clusters/:id': 'read',
  'PATCH /api/clusters/:id': 'change',
  'DELETE /api/clusters/:id': 'change',
  'POST /api/clusters/:id/execute': 'change',
  'GET /api/tasks': 'read',
  'POST /api/tasks': 'change',
  'GET /api/tasks/:taskId': 'read',
  'GET /api/tasks/:taskId/script': 'read',
  'GET /api/tasks/:taskId/logs': 'read',
  'POST /api/tasks/:taskId/cancel': 'change',
  'POST /api/tasks/:taskId/retry': 'change',
  'POST /api/agent/register': 'register',
  'POST /api/agent/heartbeat': 'agent',
  'POST /api/agent/metrics': 'agent',
  'GET /api/agent/config': 'agent',
}

/** The routes of the application itself, so that one without a row fails. */
function routesOfTheApp(): string[] {
  const found: string[] = []
  buildApp({} as never, (app) => {
    app.addHook('onRoute', ({ method, url, config }) => {
      // The 405 answers of other methods, and HEAD beside GET, follow from these.
      if (config?.allow?.anyCaller) return
      for (const one of [method].flat()) if (one !== 'HEAD') found.push(`${one} ${url}`)
    })
    registerRoutes(app, {} as never)
  })
  return [...new Set(found)]
}

type Caller = 'nobody' | 'junk' | 'revoked' | 'VIEWER' | 'OPERATOR' | 'ADMIN' | 'agent' | 'enrolment'

function allowed(right: Right, caller: Caller): boolean {
  switch (right) {
    case 'open':
      return true
    case 'anyUser':
    case 'read':
      return caller === 'VIEWER' || caller === 'OPERATOR' || caller === 'ADMIN'
    case 'change':
      return caller === 'OPERATOR' || caller === 'ADMIN'
    case 'administer':
      return caller === 'ADMIN'
    case 'agent':
      return caller === 'agent'
    case 'register':
      return caller === 'ADMIN' || caller === 'agent' || caller === 'enrolment'
  }
}

async function tokens(server: TestServer): Promise<Record<Caller, string | null>> {
  const login = async (username: string, password: string) =>
    (await server.data('POST', '/api/auth/login', { username, password })).token as string
  const user = async (role: string, username = `a-${role.toLowerCase()}`) => {
    await server.data('POST', '/api/users', { username, password: 'long enough', role })
    return login(username, 'long enough')
  }
  const revoked = await user('ADMIN', 'revoked')
  await server.api('POST', '/api/auth/logout', undefined, { authorization: `Bearer ${revoked}` })
  return {
    nobody: null,
    junk: 'rsm_ses_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
    revoked,
    VIEWER: await user('VIEWER'),
    OPERATOR: await user('OPERATOR'),
    ADMIN: server.token,
    agent: (await server.enrol('web1')).token,
    enrolment: (await server.data('POST', '/api/enrollment-tokens', { maxUses: 100 })).token,
  }
}

test('S01 every route of the application has a row in the table, and every row a route', (t) => {
  t.deepEqual(routesOfTheApp().sort(), Object.keys(table).sort())
})

test('S01 every route answers every kind of caller as the table says, before it looks at path or body', async (t) => {
  const server = await startTestServer(t)
  const callers = await tokens(server)
  // Last, because it ends the session that asks.
  const rows = Object.entries(table).sort(
    ([a], [b]) => Number(a.includes('logout')) - Number(b.includes('logout')),
  )
  for (const [caller, token] of Object.entries(callers) as [Caller, string | null][])
    for (const [route, right] of rows) {
      const [method = '', path = ''] = route.split(' ')
      const url = path.replace(':id', '999').replace(':taskId', 'nosuch')
      const { status } = await server.api(method, url, method === 'GET' ? undefined : '{"no":1', {
        authorization: token === null ? '' : `Bearer ${token}`,
      })
      const known = token !== null && caller !== 'junk' && caller !== 'revoked'
      const wanted = allowed(right, caller) ? 'let in' : known ? 403 : 401
      t.is(
        status === 401 || status === 403 ? status : 'let in',
        wanted,
        `${route} by ${caller} gave ${status}`,
      )
      t.true(status < 500, `${route} by ${caller} gave ${status}`)
    }
})

test('S01 an agent speaks for itself only: another agentId in body or query is 403', async (t) => {
  const server = await startTestServer(t)
  const first = await server.enrol('web1')
  const second = await server.enrol('web2')
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

test('the tokens of a user whose role, password or being changes end at once', async (t) => {
  const server = await startTestServer(t)
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
