import type { FastifyRequest } from 'fastify'
import { RsmError } from '../../core/errors.ts'
import {
  AgentConfigQuery,
  HeartbeatRequest,
  MetricsRequest,
  RegisterRequest,
} from '../../core/protocol/http/agent.ts'
import type { AppInstance } from '../app.ts'
import type { Caller } from '../caller.ts'
import type { RouteDependencies } from './routes.ts'

function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new RsmError('unauthenticated', 'This needs a token')
  return request.caller
}

export function agentRoutes(app: AppInstance, { agents }: RouteDependencies): void {
  const allow = { agent: true } as const
  app.post(
    '/api/agent/register',
    {
      config: { allow: { agent: true, enrollment: true, users: 'administer' } },
      schema: { summary: 'Register an agent', body: RegisterRequest },
    },
    (request) => agents.register(callerOf(request), request.body, request.ip),
  )
  app.post(
    '/api/agent/heartbeat',
    { config: { allow }, schema: { summary: 'Say that an agent lives', body: HeartbeatRequest } },
    (request, reply) => reply.send(agents.heartbeat(callerOf(request), request.body)),
  )
  app.post(
    '/api/agent/metrics',
    { config: { allow }, schema: { summary: "Report a host's metrics", body: MetricsRequest } },
    (request, reply) => reply.send(agents.metrics(callerOf(request), request.body)),
  )
  app.get(
    '/api/agent/config',
    {
      config: { allow },
      schema: { summary: 'Configuration and pending tasks', querystring: AgentConfigQuery },
    },
    (request, reply) => reply.send(agents.config(callerOf(request), request.query.agentId)),
  )
}
