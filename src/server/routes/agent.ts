import type { FastifyReply, FastifyRequest } from 'fastify'
import { RsmError } from '../../core/errors.ts'
import {
  AgentAck,
  AgentConfig,
  AgentConfigQuery,
  HeartbeatRequest,
  MetricsRequest,
  RegisterRequest,
  RegisterResult,
} from '../../core/protocol/http/agent.ts'
import type { Caller } from '../access/caller.ts'
import type { AppInstance } from '../http/app.ts'
import type { RouteDependencies } from './dependencies.ts'
import { operation } from './operation/operation.ts'

const allow = { agent: true } as const
const tag = 'agents' as const

function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new RsmError('unauthenticated', 'This needs a token')
  return request.caller
}

/** Written by hand: of all that a fleet asks of its server this is what it asks most. */
function ackText({ serverTime, configVersion, pendingTasks, mark }: AgentAck): string {
  const marked = mark ? `,"mark":{"run":"${mark.run}","sequence":${mark.sequence}}` : ''
  const data = `{"serverTime":"${serverTime}","configVersion":${configVersion},"pendingTasks":${pendingTasks}${marked}}`
  return `{"code":200,"message":"OK","data":${data}}`
}

/** Its type is set where the request came in. */
async function acknowledge(reply: FastifyReply, ack: Promise<AgentAck>): Promise<FastifyReply> {
  return reply.send(ackText(await ack))
}

export function agentRoutes(app: AppInstance, { services: { agents } }: RouteDependencies): void {
  app.post(
    '/api/agent/register',
    operation({
      id: 'registerAgent',
      tag,
      summary:
        'Register an agent: with an enrollment token, an ADMIN session or a token for administration, or its own',
      allow: { agent: true, enrollment: true, users: 'administer', lasting: true },
      body: RegisterRequest,
      answer: RegisterResult,
      errors: ['conflict', 'too_many'],
      audit: { action: 'agent.register', object: 'agent' },
    }),
    (request) => agents.register(callerOf(request), request.body, request.client),
  )
  app.post(
    '/api/agent/heartbeat',
    operation({
      id: 'sendHeartbeat',
      tag,
      summary: 'Say that an agent lives',
      allow,
      body: HeartbeatRequest,
      answer: AgentAck,
    }),
    (request, reply) => acknowledge(reply, agents.heartbeat(callerOf(request), request.body)),
  )
  app.post(
    '/api/agent/metrics',
    operation({
      id: 'reportMetrics',
      tag,
      summary: "Report a host's metrics",
      allow,
      body: MetricsRequest,
      answer: AgentAck,
    }),
    (request, reply) => acknowledge(reply, agents.metrics(callerOf(request), request.body)),
  )
  app.get(
    '/api/agent/config',
    operation({
      id: 'getAgentConfig',
      tag,
      summary: 'Configuration and pending tasks of an agent',
      allow,
      query: AgentConfigQuery,
      answer: AgentConfig,
    }),
    (request) => agents.config(callerOf(request), request.query.agentId),
  )
}
