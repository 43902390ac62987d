import { codeOfStatus, RsmError } from '../../core/errors.ts'
import type {
  AgentAck,
  AgentConfig,
  HeartbeatRequest,
  MetricsRequest,
  RegisterRequest,
  RegisterResult,
} from '../../core/protocol/http/agent.ts'
import { type Connection, reasonOf } from '../../net/connect.ts'
import { parseEnvelope } from '../../net/envelope.ts'
import { openRequests, readText, retryAfterOf } from '../../net/request.ts'
import type { ServerTime } from '../clock.ts'

const answerTimeout = 30_000
const longestAnswer = 1024 * 1024
const tooLong = () => new Error('the answer is too long')

/** The agent's HTTP endpoints (base-api "Calls of agents"). Rejects with RsmError; no answer is `unreachable`. */
export interface ServerApi {
  register(body: RegisterRequest, token: string): Promise<RegisterResult>
  heartbeat(body: HeartbeatRequest): Promise<AgentAck>
  metrics(body: MetricsRequest): Promise<AgentAck>
  config(agentId: string): Promise<AgentConfig>
}

/** `token` is called for every request, because a new registration may change it. */
export function serverApi(connection: Connection, token: () => string, serverTime: ServerTime): ServerApi {
  const patience = { answer: answerTimeout, silence: answerTimeout }
  const send = openRequests(connection, (error) => new Error(reasonOf(error)), patience)

  async function exchange(method: string, path: string, bearer: string, body?: object) {
    const text = body && JSON.stringify(body)
    const headers = {
      authorization: `Bearer ${bearer}`,
      ...(text && { 'content-type': 'application/json', 'content-length': `${Buffer.byteLength(text)}` }),
    }
    try {
      const answer = await send({ method, path, headers, body: text })
      return { ...answer, text: await readText(answer.body, longestAnswer, tooLong) }
    } catch (error) {
      const where = `${connection.url}${path.split('?')[0]}`
      throw new RsmError('unreachable', `${method} ${where}: ${reasonOf(error)}`, { cause: error })
    }
  }

  async function call<T>(method: string, path: string, bearer: string, body?: object): Promise<T> {
    const askedAt = performance.now()
    const { status, headers, text } = await exchange(method, path, bearer, body)
    const { message, data } = parseEnvelope(text) ?? {}
    if (status >= 200 && status < 300 && typeof data === 'object' && data !== null) {
      const time = 'serverTime' in data ? data.serverTime : undefined
      serverTime.observe(typeof time === 'string' ? time : undefined, askedAt)
      return data as T
    }
    const sentence = message ?? `the server answered ${status}`
    const retryAfter = retryAfterOf(headers)
    throw new RsmError(
      status < 400 ? 'internal' : codeOfStatus(status),
      sentence,
      retryAfter === undefined ? {} : { retryAfter },
    )
  }
  return {
    register: (body, bearer) => call('POST', '/api/agent/register', bearer, body),
    heartbeat: (body) => call('POST', '/api/agent/heartbeat', token(), body),
    metrics: (body) => call('POST', '/api/agent/metrics', token(), body),
    config: (agentId) => call('GET', `/api/agent/config?agentId=${encodeURIComponent(agentId)}`, token()),
  }
}
