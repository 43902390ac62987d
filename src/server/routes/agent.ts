import type { FastifyRequest } from 'fastify'
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
import { FetchedPart, FetchedPartQuery } from '../../core/protocol/http/files.ts'
import type { AppInstance } from '../http/app.ts'
import { fileIdOf, operation, taskIdOf } from '../http/operation.ts'
import type { AgentCaller, Caller } from '../storage/ports/caller.ts'
import { bodyOf, sendBytes } from './bytes.ts'
import type { RouteDependencies } from './dependencies.ts'

const allow = { agent: true } as const
const tag = 'agents' as const

function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new RsmError('unauthenticated', 'This requires a token')
  return request.caller
}

/** The calling agent; only for routes that allow nothing but agents. */
function agentOf(request: FastifyRequest): AgentCaller {
  const caller = callerOf(request)
  if (caller.type !== 'agent') throw new RsmError('forbidden', 'This requires an agent token')
  return caller
}

export function agentRoutes(app: AppInstance, { services: { agents }, context }: RouteDependencies): void {
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
      summary: 'Report that an agent is alive',
      allow,
      body: HeartbeatRequest,
      answer: AgentAck,
    }),
    (request) => agents.heartbeat(callerOf(request), request.body),
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
    (request) => agents.metrics(callerOf(request), request.body),
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
  app.get(
    '/api/agent/files/:fileId',
    operation({
      id: 'getAgentFile',
      tag,
      summary: "Download a file that an open execution on the agent's host uses",
      allow,
      media: {
        'application/octet-stream': {
          holds: 'The file, or the part requested by Range',
          example: 'text',
        },
      },
      headers: { Range: 'One byte range; for several, the answer is the whole file' },
    }),
    async (request, reply) => {
      const { file, rate, sent } = await context.transfers.forAgent(
        agentOf(request).hostId,
        fileIdOf(request),
      )
      const { size, sha256 } = file
      return sendBytes(request, reply, {
        size: size ?? 0,
        sha256: sha256 ?? '',
        type: 'application/octet-stream',
        rate,
        sent,
        read: (from, to) => context.files.read(file, from, to),
      })
    },
  )
  app.put(
    '/api/agent/tasks/:taskId/file',
    operation({
      id: 'putAgentFile',
      tag,
      summary: 'Append to the file that a task fetches; a wrong offset is a 409 with the right one',
      allow,
      query: FetchedPartQuery,
      bytes: true,
      answer: FetchedPart,
      errors: ['conflict'],
    }),
    async (request) => {
      const { offset, end = false, sha256 = null } = request.query
      const arrival = { ...bodyOf(request), offset, end, sha256 }
      return {
        offset: await context.transfers.fromAgent(agentOf(request).hostId, taskIdOf(request), arrival),
      }
    },
  )
}
