import { Agent, request } from 'node:http'
import type { ExecutionContext } from 'ava'
import type { RegisteredOperation } from '../api/operations.ts'
import { patience } from '../patience.ts'
import { startTestServer, type TestServer } from '../servers/server.ts'

const atOnce = 16

/** A server with a record of each kind, for calls of every operation. */
export interface Fixture {
  server: TestServer
  ids: Record<string, string>
  agent: { token: string; agentId: string; hostId: number }
  http: Agent
}

export async function openFixture(t: ExecutionContext): Promise<Fixture> {
  const server = await startTestServer(t)
  const agent = await server.enroll('web1')
  const hostIds = [agent.hostId]
  // The first use of an agent's token is recorded in the store, whatever the body is.
  const { agentId } = agent
  const auth = { authorization: `Bearer ${agent.token}` }
  await server.api('POST', '/api/agent/heartbeat', { agentId, status: 'HEALTHY' }, auth)
  const script = await server.data('POST', '/api/scripts', { name: 's', type: 'BASH', content: 'true' })
  const cluster = await server.data('POST', '/api/clusters', { name: 'c', hostIds })
  const user = await server.data('POST', '/api/users', {
    username: 'u',
    password: 'long enough',
    role: 'VIEWER',
  })
  const token = await server.data('POST', '/api/tokens', { name: 't' })
  const enrollment = await server.data('POST', '/api/enrollment-tokens', {})
  const task = await server.data('POST', '/api/tasks', {
    script: { content: 'true' },
    target: { hostIds },
    queueSeconds: 0,
    async: false,
  })
  const schedule = await server.data('POST', '/api/schedules', {
    name: 'nightly',
    cron: '30 3 29 2 *',
    script: { content: 'true' },
    target: { hostIds },
  })
  const webhook = await server.data('POST', '/api/webhooks', {
    name: 'on call',
    url: 'https://hooks.example.org/rsm',
    events: ['agent.revoked'],
  })
  const http = new Agent({ keepAlive: true, maxSockets: atOnce })
  t.teardown(() => http.destroy())
  const ids = {
    hosts: agent.hostId,
    scripts: script.id,
    clusters: cluster.id,
    users: user.id,
    tokens: token.id,
    'enrollment-tokens': enrollment.id,
    tasks: task.taskId,
    schedules: schedule.id,
    webhooks: webhook.id,
  }
  return {
    server,
    agent,
    http,
    ids: Object.fromEntries(Object.entries(ids).map(([noun, id]) => [noun, String(id)])),
  }
}

export interface Answer {
  status: number
  text: string
  type: string
}

export function send(
  fixture: Fixture,
  method: string,
  path: string,
  token: string,
  body?: string,
  more: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...more,
    }
    const url = new URL(fixture.server.url)
    const asked = request(
      { host: url.hostname, port: url.port, agent: fixture.http, method, path, headers },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
        const { statusCode: status = 0, headers: answered } = response
        response.on('end', () => resolve({ status, text, type: answered['content-type'] ?? '' }))
      },
    )
    asked.setTimeout(patience, () => asked.destroy(new Error(`no answer to ${method} ${path}`)))
    asked.on('error', reject)
    asked.end(body)
  })
}

export function pathOf({ url }: RegisteredOperation, fixture: Fixture, id?: string): string {
  const noun = url.split('/')[2] ?? ''
  return url.replace(/:\w+/, id ?? fixture.ids[noun] ?? '1').replace(':version', '1')
}

/** The agent's token for its operations: any other token is refused before the body is read. */
export const callerOf = ({ operation }: RegisteredOperation, { server, agent }: Fixture) =>
  operation.allow.agent && !operation.allow.users ? agent.token : server.token
