import http from 'node:http'
import https from 'node:https'
import { codeOfStatus, RsmError } from '../../core/errors.ts'
import type {
  AgentAck,
  AgentConfig,
  HeartbeatRequest,
  MetricsRequest,
  RegisterRequest,
  RegisterResult,
} from '../../core/protocol/http/agent.ts'
import type { ServerTime } from '../clock.ts'
import type { Connection } from './connection.ts'

const answerTimeout = 30_000
const longestAnswer = 1024 * 1024

/** The agent's HTTP endpoints (seed "Agent HTTP endpoints"). Rejects with RsmError; no answer is `unreachable`. */
export interface ServerApi {
  register(body: RegisterRequest, token: string): Promise<RegisterResult>
  heartbeat(body: HeartbeatRequest): Promise<AgentAck>
  metrics(body: MetricsRequest): Promise<AgentAck>
  config(agentId: string): Promise<AgentConfig>
}

interface Answer {
  status: number
  text: string
  retryAfter: number | undefined
}

function exchange(
  connection: Connection,
  method: string,
  path: string,
  token: string,
  body?: object,
): Promise<Answer> {
  const { base, agent } = connection
  const text = body && JSON.stringify(body)
  const where = `${base.origin}${path.split('?')[0]}`
  return new Promise((resolve, reject) => {
    const fail = (reason: string) => reject(new RsmError('unreachable', `${method} ${where}: ${reason}`))
    const request = (base.protocol === 'https:' ? https : http).request(
      new URL(path, base),
      {
        method,
        agent,
        timeout: answerTimeout,
        headers: {
          authorization: `Bearer ${token}`,
          ...(text && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
        },
      },
      (response) => {
        let received = ''
        response.setEncoding('utf8')
        response.on('data', (piece: string) => {
          received += piece
          if (received.length > longestAnswer) request.destroy(new Error('the answer is too long'))
        })
        response.on('error', (error) => fail(error.message))
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 500,
            text: received,
            retryAfter: Number(response.headers['retry-after']) || undefined,
          }),
        )
      },
    )
    request.on('timeout', () => request.destroy(new Error('no answer in 30 s')))
    request.on('error', (error) => fail(error.message || 'the connection failed'))
    request.end(text)
  })
}

function parsed(answer: Answer): { message?: unknown; data?: unknown } {
  try {
    const value: unknown = JSON.parse(answer.text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

/** `token` is asked for at every call, as a new registration may change it. */
export function serverApi(connection: Connection, token: () => string, serverTime: ServerTime): ServerApi {
  async function call<T>(method: string, path: string, bearer: string, body?: object): Promise<T> {
    const askedAt = performance.now()
    const answer = await exchange(connection, method, path, bearer, body)
    const { message, data } = parsed(answer)
    if (answer.status >= 200 && answer.status < 300 && typeof data === 'object' && data !== null) {
      const time = 'serverTime' in data ? data.serverTime : undefined
      serverTime.observe(typeof time === 'string' ? time : undefined, askedAt)
      return data as T
    }
    const said = typeof message === 'string' ? message : `the server answered ${answer.status}`
    throw new RsmError(
      answer.status < 400 ? 'internal' : codeOfStatus(answer.status),
      said,
      answer.retryAfter === undefined ? {} : { retryAfter: answer.retryAfter },
    )
  }
  return {
    register: (body, bearer) => call('POST', '/api/agent/register', bearer, body),
    heartbeat: (body) => call('POST', '/api/agent/heartbeat', token(), body),
    metrics: (body) => call('POST', '/api/agent/metrics', token(), body),
    config: (agentId) => call('GET', `/api/agent/config?agentId=${encodeURIComponent(agentId)}`, token()),
  }
}
