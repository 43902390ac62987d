import type { ExecutionContext } from 'ava'
import { type Identity, ScriptedAgent } from '../agents/scripted-agent.ts'
import { sendBytes, upload } from '../clients/files.ts'
import { appShows, enableTotp } from '../clients/totp.ts'
import { handOut } from '../servers/hand-out.ts'
import { adminLogin, startTestServer, type TestServer } from '../servers/server.ts'

/** Parameters of a call beside its method and path. */
export interface Call {
  /** Values of the path's parameters. */
  path?: Record<string, string | number>
  query?: string
  body?: unknown
  headers?: Record<string, string>
  /** Whether the answer never ends: its first piece is enough. */
  endless?: true
  /** The admin's token by default. */
  token?: string
}

/** A server with a host whose agent runs everything, and a host without an agent. */
export interface World {
  server: TestServer
  host: Identity
  away: number
  /** An unused name. */
  fresh: (noun: string) => string
  enrollment: string
  viewer: string
}

const password = 'long enough'

export async function startWorld(t: ExecutionContext): Promise<World> {
  const server = await startTestServer(t)
  const host = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, host, { capabilities: { terminal: true } })
  agent.serveTerminals()
  agent.serve(() => ({ output: 'hello\n' }))
  t.teardown(() => agent.cut())
  const { id: away } = await server.data('POST', '/api/hosts', { hostname: 'away', ip: '10.0.0.9' })
  const { token: enrollment } = await server.data('POST', '/api/enrollment-tokens', { maxUses: 100 })
  let names = 0
  const fresh = (noun: string) => `${noun}${names++}`
  const { token: viewer } = await server.data('POST', '/api/tokens', { name: 'viewer', role: 'VIEWER' })
  return { server, host, away, fresh, enrollment, viewer }
}

const made = async ({ server }: World, path: string, body: object): Promise<number> =>
  (await server.data('POST', path, body)).id
/** Creates a user and logs in. */
async function loggedIn({ server, fresh }: World): Promise<{ token: string }> {
  const username = fresh('user')
  await server.data('POST', '/api/users', { username, password, role: 'OPERATOR' })
  return server.data('POST', '/api/auth/login', { username, password })
}
const user = (w: World) => made(w, '/api/users', { username: w.fresh('user'), password, role: 'OPERATOR' })
const host = (w: World) => made(w, '/api/hosts', { hostname: w.fresh('host'), ip: '10.0.0.1' })
const script = (w: World) =>
  made(w, '/api/scripts', { name: w.fresh('script'), type: 'BASH', content: 'echo hello' })
const cluster = (w: World) => made(w, '/api/clusters', { name: w.fresh('web'), hostIds: [w.host.hostId] })
const webhook = (w: World) =>
  made(w, '/api/webhooks', {
    name: w.fresh('hook'),
    url: 'https://alerts.example.org/rsm',
    events: ['task.failed'],
  })
/** Due once a year, so never during a test. */
const nightly = { cron: '0 3 29 2 *', script: { content: 'true' }, target: { selector: 'web1' } }
const schedule = (w: World) => made(w, '/api/schedules', { name: w.fresh('schedule'), ...nightly })
const task = async ({ server, host: { hostId } }: World, options: object = {}) =>
  (
    await server.data('POST', '/api/tasks', {
      script: { content: 'echo hello' },
      target: { hostIds: [hostId] },
      params: { UNIT: 'nginx' },
      async: false,
      ...options,
    })
  ).taskId as string
/** A task that does not end: its only host stays offline. */
const waiting = (w: World) => task(w, { target: { hostIds: [w.away] }, async: true, queueSeconds: 600 })
const terminal = async ({ server, host: { hostId } }: World): Promise<string> =>
  (await server.data('POST', '/api/terminals', { hostId, cols: 80, rows: 24 })).sessionId
const ofBytes = { 'content-type': 'application/octet-stream' }
/** A task on a host that has received the order to fetch. */
async function fetching(w: World, kind = 'FILE'): Promise<{ taskId: string; token: string; hostId: number }> {
  const name = w.fresh('web')
  const identity = await w.server.enroll(name)
  const agent = await ScriptedAgent.link(w.server, identity, { capabilities: { files: true } })
  const taskId = await task(w, {
    script: undefined,
    params: undefined,
    fetch: { path: '/f', kind },
    target: { hostIds: [identity.hostId] },
    async: true,
  })
  await agent.next('FETCH_FILE')
  return { taskId, token: identity.token, hostId: identity.hostId }
}
const metrics = {
  timestamp: '2026-03-02T09:30:00.000Z',
  cpu: { usagePercent: 1, loadAvg1m: 0, loadAvg5m: 0, loadAvg15m: 0 },
  memory: { totalMB: 1, usedMB: 1, availableMB: 1, usagePercent: 5 },
  disk: [{ mountPoint: '/', totalGB: 1, usedGB: 0.5, usagePercent: 50 }],
  network: { rxBytesPerSec: 0, txBytesPerSec: 0, connections: 0 },
}
const both = (call: Call): Call[] => [call, { ...call, body: { ...(call.body as object), async: false } }]

/** Calls of each operation that succeed, in all forms of its answer. */
export const drives: Record<string, (world: World) => Call | Call[] | Promise<Call | Call[]>> = {
  getHealth: () => ({}),
  getReady: () => ({}),
  getServer: () => ({}),
  getServerStatus: () => ({}),
  listServers: () => ({}),
  getServerBackup: () => ({}),
  getMetrics: () => ({}),
  getOpenapi: () => ({}),
  getDocs: () => ({}),
  getDocsFile: () => ['start.js', 'swagger-ui.css', 'favicon-32x32.png'].map((file) => ({ path: { file } })),
  getConsole: () => ({}),
  getInstallScript: () => ({}),
  getReleaseSums: () => ({}),
  getRelease: async ({ server }) => {
    await handOut(server, '#!/bin/sh\n')
    return { path: { file: 'rsm-linux-x64' } }
  },
  getConsoleFile: () => ['main.js', 'main.css', 'icon.svg'].map((file) => ({ path: { file } })),

  login: () => ({ body: adminLogin }),
  logout: async ({ server, fresh }) => ({
    token: (await server.data('POST', '/api/tokens', { name: fresh('token') })).token,
  }),
  getMe: () => ({}),
  createTotp: () => ({ body: { currentPassword: adminLogin.password } }),
  confirmTotp: async (w) => {
    const { token } = await loggedIn(w)
    const made = await w.server.api(
      'POST',
      '/api/auth/totp',
      { currentPassword: password },
      { authorization: `Bearer ${token}` },
    )
    return { token, body: { code: appShows(made.body.data.secret) } }
  },
  removeTotp: async (w) => {
    const { token } = await loggedIn(w)
    const { secret } = await enableTotp(w.server, password, token)
    return { token, body: { code: appShows(secret) } }
  },
  listSessions: () => ({}),
  deleteSession: async ({ server }) => {
    await server.data('POST', '/api/auth/login', adminLogin)
    const { content } = await server.data('GET', '/api/auth/sessions?size=500')
    return { path: { id: content.find(({ current }: { current: boolean }) => !current).id } }
  },
  deleteOtherSessions: () => ({}),
  changePassword: async (w) => {
    const { token } = await loggedIn(w)
    return { token, body: { currentPassword: password, newPassword: 'another one' } }
  },

  listUsers: () => ({}),
  createUser: (w) => ({ body: { username: w.fresh('user'), password, role: 'VIEWER', email: 'a@b.c' } }),
  getUser: () => ({ path: { id: 1 } }),
  updateUser: async (w) => ({ path: { id: await user(w) }, body: { role: 'VIEWER' } }),
  deleteUser: async (w) => ({ path: { id: await user(w) } }),

  listTokens: async (w) => {
    await made(w, '/api/tokens', { name: w.fresh('token') })
    return {}
  },
  createToken: (w) => ({ body: { name: w.fresh('token'), role: 'VIEWER', expiresInDays: 1 } }),
  deleteToken: async (w) => ({ path: { id: await made(w, '/api/tokens', { name: w.fresh('token') }) } }),

  listEnrollmentTokens: () => ({}),
  createEnrollmentToken: () => [
    { body: { name: 'web', tags: { role: 'web' } } },
    { body: { url: 'https://rsm.example.org', fingerprint: `sha256//${'A'.repeat(43)}=` } },
  ],
  deleteEnrollmentToken: async (w) => ({ path: { id: await made(w, '/api/enrollment-tokens', {}) } }),

  listHosts: () => ({ query: 'size=500' }),
  selectHosts: () => ({ body: { target: { hosts: ['web1'], exclude: [] } } }),
  createHost: (w) => ({ body: { hostname: w.fresh('host'), ip: '10.0.0.1', tags: { env: 'test' } } }),
  getHost: (w) => ({ path: { id: w.host.hostId } }),
  updateHost: async (w) => ({ path: { id: await host(w) }, body: { sshPort: 2222 } }),
  deleteHost: async (w) => ({ path: { id: await host(w) } }),
  getHostMetrics: async ({ server, host: { hostId, agentId, token } }) => {
    const timestamp = new Date().toISOString()
    await server.api(
      'POST',
      '/api/agent/metrics',
      { agentId, ...metrics, timestamp },
      { authorization: `Bearer ${token}` },
    )
    return { path: { id: hostId }, query: 'points=10' }
  },
  // The host has no credentials, so there is no connection.
  installAgent: async (w) => both({ path: { id: await host(w) }, body: { sudo: true } }),
  revokeAgent: async (w) => ({ path: { id: (await w.server.enroll(w.fresh('web'))).hostId } }),

  listScripts: async (w) => {
    await script(w)
    return {}
  },
  createScript: (w) => ({ body: { name: w.fresh('script'), type: 'BASH', content: 'true' } }),
  getScript: async (w) => ({ path: { id: await script(w) } }),
  updateScript: async (w) => ({ path: { id: await script(w) }, body: { timeout: 5, category: 'release' } }),
  deleteScript: async (w) => ({ path: { id: await script(w) } }),
  listScriptVersions: async (w) => ({ path: { id: await script(w) } }),
  getScriptVersion: async (w) => ({ path: { id: await script(w), version: 1 } }),
  executeScript: async (w) => both({ path: { id: await script(w) }, body: { hostIds: [w.host.hostId] } }),

  listWebhooks: async (w) => {
    await webhook(w)
    return {}
  },
  createWebhook: (w) => ({
    body: { name: w.fresh('hook'), url: 'https://alerts.example.org/rsm', events: ['task.failed'] },
  }),
  getWebhook: async (w) => ({ path: { id: await webhook(w) } }),
  updateWebhook: async (w) => ({ path: { id: await webhook(w) }, body: { secret: null } }),
  deleteWebhook: async (w) => ({ path: { id: await webhook(w) } }),
  testWebhook: async (w) => ({ path: { id: await webhook(w) } }),
  listDeliveries: async (w) => {
    const id = await webhook(w)
    await task(w, { script: { content: 'exit 1' } })
    return { path: { id } }
  },
  listClusters: async (w) => {
    await cluster(w)
    return {}
  },
  createCluster: (w) => ({ body: { name: w.fresh('web'), selector: 'web1' } }),
  getCluster: async (w) => ({ path: { id: await cluster(w) } }),
  updateCluster: async (w) => ({ path: { id: await cluster(w) }, body: { description: 'changed' } }),
  deleteCluster: async (w) => ({ path: { id: await cluster(w) } }),
  executeCluster: async (w) => both({ path: { id: await cluster(w) }, body: { scriptId: await script(w) } }),

  listTasks: async (w) => {
    await task(w, { strategy: 'ROLLING', batchSize: [1, '50%'] })
    return {}
  },
  createTask: () => both({ body: { script: { content: 'true' }, target: { selector: 'web1' } } }),
  getTask: async (w) => [{ path: { taskId: await task(w) } }, { path: { taskId: await waiting(w) } }],
  getTaskScript: async (w) => ({ path: { taskId: await task(w, { secretParams: { KEY: 'x' } }) } }),
  getTaskLogs: async (w) => {
    const path = { taskId: await task(w) }
    return [{ path }, { path, query: 'follow=true' }, { path, headers: { accept: 'text/plain' } }]
  },
  listTaskFiles: async (w) => ({ path: { taskId: (await fetching(w)).taskId } }),
  getTaskFile: async (w) => {
    const calls: Call[] = []
    for (const kind of ['FILE', 'TREE']) {
      const { taskId, token, hostId } = await fetching(w, kind)
      const path = `/api/agent/tasks/${taskId}/file?offset=0&end=true`
      await sendBytes({ url: w.server.url, token }, 'PUT', path, 'x')
      calls.push({ path: { taskId, hostId } })
    }
    return calls
  },
  listFiles: async ({ server }) => {
    await upload(server, 'text')
    return {}
  },
  removeFile: async ({ server }) => ({ path: { fileId: (await upload(server, 'text')).fileId } }),
  createFile: () => [{ query: 'size=1' }, { body: 'text', headers: ofBytes }],
  getFile: async ({ server }) => ({ path: { fileId: (await upload(server, 'text')).fileId } }),
  appendFile: async ({ server }) => {
    const { data } = await sendBytes(server, 'POST', '/api/files')
    return { path: { fileId: data.fileId }, query: 'offset=0', body: 'text', headers: ofBytes }
  },
  cancelTask: async (w) => ({ path: { taskId: await waiting(w) } }),
  retryTask: async (w) =>
    both({ path: { taskId: await task(w, { target: { hostIds: [w.away] }, queueSeconds: 0 }) }, body: {} }),

  listSchedules: async (w) => {
    await schedule(w)
    return {}
  },
  createSchedule: async (w) => [
    { body: { name: w.fresh('schedule'), ...nightly, secretParams: { KEY: 'x' } } },
    {
      body: {
        name: w.fresh('schedule'),
        everySeconds: 86_400,
        scriptId: await script(w),
        target: { selector: 'web1' },
        strategy: 'ROLLING',
        batchSize: [1, '50%'],
      },
    },
  ],
  getSchedule: async (w) => ({ path: { id: await schedule(w) } }),
  updateSchedule: async (w) => ({ path: { id: await schedule(w) }, body: { enabled: false, timeout: 5 } }),
  deleteSchedule: async (w) => ({ path: { id: await schedule(w) } }),
  runSchedule: async (w) => ({ path: { id: await schedule(w) } }),
  getScheduleNext: async (w) => ({ path: { id: await schedule(w) }, query: 'count=3' }),
  listScheduleHistory: async (w) => {
    const id = await schedule(w)
    await w.server.data('POST', `/api/schedules/${id}/run`)
    return { path: { id } }
  },

  listTerminals: async (w) => {
    await terminal(w)
    return {}
  },
  openTerminal: (w) => ({ body: { hostId: w.host.hostId, cols: 80, rows: 24, command: 'true' } }),
  getTerminal: async (w) => ({ path: { sessionId: await terminal(w) } }),
  endTerminal: async (w) => ({ path: { sessionId: await terminal(w) } }),
  createTerminalTicket: async (w) => ({ path: { sessionId: await terminal(w) }, body: {} }),
  getTerminalRecording: async (w) => ({ path: { sessionId: await terminal(w) } }),

  followEvents: () => ({ endless: true }),

  listAudit: () => [{ query: 'size=500' }, { headers: { accept: 'application/x-ndjson' } }],

  registerAgent: (w) => ({
    token: w.enrollment,
    body: { agentId: w.fresh('agent'), hostname: w.fresh('web') },
  }),
  sendHeartbeat: ({ host: { agentId, token } }) => ({ token, body: { agentId, status: 'HEALTHY' } }),
  reportMetrics: ({ host: { agentId, token } }) => ({ token, body: { agentId, ...metrics } }),
  getAgentFile: async (w) => {
    const identity = await w.server.enroll(w.fresh('web'))
    const agent = await ScriptedAgent.link(w.server, identity, { capabilities: { files: true } })
    const { fileId } = await upload(w.server, 'text')
    const copy = { fileId, path: '/f', kind: 'FILE' }
    await w.server.data('POST', '/api/tasks', { copy, target: { hostIds: [identity.hostId] } })
    await agent.next('COPY_FILE')
    return { token: identity.token, path: { fileId } }
  },
  putAgentFile: async (w) => {
    const { taskId, token } = await fetching(w)
    return { token, path: { taskId }, query: 'offset=0', body: 'text', headers: ofBytes }
  },
  getAgentConfig: async (w) => {
    await waiting(w)
    const { agentId, token } = w.host
    return { token, query: `agentId=${agentId}` }
  },
}
