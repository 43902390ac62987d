/**
 * Fastify as in its guide: the same request schemas, a response schema, no hooks, no tokens, no log. Receives the hosts that it
 * lists, and sends its port.
 */
import type { AddressInfo } from 'node:net'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify from 'fastify'
import { type TSchema, Type } from 'typebox'
import { AgentAck, HeartbeatRequest } from '../../src/core/protocol/http/agent.ts'
import { Host, HostQuery } from '../../src/core/protocol/http/hosts.ts'
import { bodyAjv, queryAjv } from '../../src/server/http/validation.ts'

const Envelope = <T extends TSchema>(data: T) =>
  Type.Object({ code: Type.Integer(), message: Type.String(), data })
const HostPage = Type.Object({
  content: Type.Array(Host),
  page: Type.Integer(),
  size: Type.Integer(),
  totalElements: Type.Integer(),
  totalPages: Type.Integer(),
})

let hosts: Host[] = []
const app = Fastify().withTypeProvider<TypeBoxTypeProvider>()
app.setValidatorCompiler(({ schema, httpPart }) =>
  (httpPart === 'querystring' ? queryAjv : bodyAjv).compile(schema),
)
app.post(
  '/api/agent/heartbeat',
  { schema: { body: HeartbeatRequest, response: { 200: Envelope(AgentAck) } } },
  () => ({
    code: 200,
    message: 'OK',
    data: { serverTime: new Date().toISOString(), configVersion: 1, pendingTasks: 0 },
  }),
)

const list = (query: HostQuery) => {
  const { page = 0, size = 20 } = query
  return {
    code: 200,
    message: 'OK',
    data: {
      content: hosts.slice(page * size, (page + 1) * size),
      page,
      size,
      totalElements: hosts.length,
      totalPages: Math.ceil(hosts.length / size),
    },
  }
}
app.get(
  '/api/hosts',
  { schema: { querystring: HostQuery, response: { 200: Envelope(HostPage) } } },
  (request) => list(request.query),
)
/** Without a response schema Fastify serializes with JSON.stringify. */
app.get('/stringified/hosts', { schema: { querystring: HostQuery } }, (request) => list(request.query))

process.on('message', (sent: Host[]) => {
  hosts = sent
  process.send?.('ready')
})
process.on('disconnect', () => process.exit())
await app.listen({ host: '127.0.0.1', port: 0 })
process.send?.((app.server.address() as AddressInfo).port)
