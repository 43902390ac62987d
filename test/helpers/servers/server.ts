import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import type { ServerOptions } from '../../../src/server/app/options.ts'
import { type RunningServer, startServer } from '../../fixtures/server-main.ts'
import { onSteadyPort } from './steady-port.ts'

export const adminPassword = 'a password for tests'
/** Cheap hashing, because most tests are not about passwords. */
export const passwordCost = { N: 1024, r: 8, p: 1 }
export const adminLogin = { username: 'admin', password: adminPassword }

/** A response of the REST API: its status, headers and envelope. */
export interface Answer {
  status: number
  headers: { get(name: string): string | null }
  body: { code: number; message: string; data: any; errors?: { field: string; message: string }[] }
}

/** A real server on a data directory of its own, and a caller with the admin's token. */
export interface TestServer {
  url: string
  dataDir: string
  token: string
  api(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** Like `api`, but a status other than 2xx fails the test; returns `data`. */
  data(method: string, path: string, body?: unknown): Promise<any>
  /** Registers a host with an agent identity: `{hostId, agentId, token}`. */
  enroll(hostname: string): Promise<{ hostId: number; agentId: string; token: string }>
  /** Stops the server and starts it again on the same directory and port. */
  restart(): Promise<void>
  stop(): Promise<void>
}

type RestCaller = Pick<TestServer, 'api' | 'data' | 'enroll'>

interface Request {
  method: string
  headers: Record<string, string>
  body?: string
}

type Send = (path: string, request: Request) => Promise<Omit<Answer, 'body'> & { text(): Promise<string> }>

/** Calls a server with the current token; over HTTP by default. */
export function restCaller(
  state: () => { url: string; token: string },
  send: Send = (path, request) => fetch(`${state().url}${path}`, request),
): RestCaller {
  const caller: RestCaller = {
    async api(method, path, body, headers = {}) {
      const response = await send(path, {
        method,
        headers: {
          ...(state().token ? { authorization: `Bearer ${state().token}` } : {}),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      const text = await response.text()
      // A body of another media type becomes the `data` of an envelope.
      const isJson = response.headers.get('content-type')?.startsWith('application/json') !== false
      const { status } = response
      const envelope = (
        isJson ? JSON.parse(text) : { code: status, message: '', data: text }
      ) as Answer['body']
      return { status, headers: response.headers, body: envelope }
    },
    async data(method, path, body) {
      const answer = await caller.api(method, path, body)
      if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`)
      return answer.body.data
    },
    async enroll(hostname) {
      const { token: enrollment } = await caller.data('POST', '/api/enrollment-tokens', {})
      const agentId = `agent-${hostname}`
      const answer = await caller.api(
        'POST',
        '/api/agent/register',
        { agentId, hostname, ipAddresses: ['127.0.0.1'], os: 'linux', arch: 'x64', agentVersion: 'test' },
        { authorization: `Bearer ${enrollment}` },
      )
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
      return { hostId: answer.body.data.hostId, agentId, token: answer.body.data.token }
    },
  }
  return caller
}

/** Calls without a connection. A loop of calls lets other work continue in between, as it would with one. */
function injecting(server: () => RunningServer): Send {
  return async (path, { method, headers, body }) => {
    await setImmediate()
    const answer = await server().inject({
      method: method as 'GET',
      url: path,
      headers,
      ...(body === undefined ? {} : { payload: body }),
    })
    return {
      status: answer.statusCode,
      headers: { get: (name) => answer.headers[name.toLowerCase()]?.toString() ?? null },
      text: async () => answer.payload,
    }
  }
}

export function startTestServer(
  t: ExecutionContext,
  options: Partial<ServerOptions> = {},
): Promise<TestServer> {
  return startServerOf(t, options)
}

/** A server whose `api` needs no connection, for tests without sockets. */
export function startInjectedServer(
  t: ExecutionContext,
  options: Partial<ServerOptions> = {},
): Promise<TestServer> {
  return startServerOf(t, options, injecting)
}

async function startServerOf(
  t: ExecutionContext,
  options: Partial<ServerOptions>,
  send?: (server: () => RunningServer) => Send,
): Promise<TestServer> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'rsm-server-')))
  const settings: ServerOptions = {
    host: '127.0.0.1',
    port: 0,
    dataDir,
    heartbeatInterval: 30,
    metricsInterval: 60,
    wsIdleTimeout: 300,
    adminPassword,
    insecureHttp: false,
    logLevel: 'ERROR',
    passwordCost,
    ...options,
  }
  let server: RunningServer = await onSteadyPort((port) => {
    settings.port = port
    return startServer(settings)
  })
  t.teardown(async () => {
    await server.close()
    await rm(dataDir, { recursive: true, force: true })
  })

  const started: TestServer = {
    url: server.url,
    dataDir,
    token: '',
    ...restCaller(
      () => started,
      send?.(() => server),
    ),
    async restart() {
      await server.close()
      server = await startServer(settings)
    },
    stop: () => server.close(),
  }
  const { token } = await started.data('POST', '/api/auth/login', adminLogin)
  started.token = token
  return started
}
