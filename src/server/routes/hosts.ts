import { Type } from 'typebox'
import { Closed } from '../../core/protocol/http/common.ts'
import { HostCreate, HostPatch, HostQuery } from '../../core/protocol/http/hosts.ts'
import type { AppInstance } from '../app.ts'
import { userOf } from '../auth.ts'
import { idOf } from './path.ts'
import type { RouteDependencies } from './routes.ts'

const read = { users: 'read' } as const
const change = { users: 'change' } as const
const administer = { users: 'administer' } as const
const exists = 'hosts' as const
const RemoveQuery = Closed({ force: Type.Optional(Type.Boolean()) })

export function hostRoutes(app: AppInstance, { services }: RouteDependencies): void {
  app.get(
    '/api/hosts',
    { config: { allow: read }, schema: { summary: 'List hosts', querystring: HostQuery } },
    (request) => services(userOf(request)).hosts.list(request.query),
  )
  app.post(
    '/api/hosts',
    { config: { allow: change }, schema: { summary: 'Create a host', body: HostCreate } },
    (request, reply) => {
      reply.code(201)
      return services(userOf(request)).hosts.create(request.body)
    },
  )
  app.get(
    '/api/hosts/:id',
    { config: { allow: read, exists }, schema: { summary: 'Read a host' } },
    (request) => services(userOf(request)).hosts.get(idOf(request)),
  )
  app.patch(
    '/api/hosts/:id',
    { config: { allow: change, exists }, schema: { summary: 'Change a host', body: HostPatch } },
    (request) => services(userOf(request)).hosts.update(idOf(request), request.body),
  )
  app.delete(
    '/api/hosts/:id',
    { config: { allow: change, exists }, schema: { summary: 'Delete a host', querystring: RemoveQuery } },
    (request) =>
      services(userOf(request)).hosts.remove(idOf(request), { force: request.query.force ?? false }),
  )
  app.delete(
    '/api/hosts/:id/agent',
    { config: { allow: administer, exists }, schema: { summary: "Revoke a host's agent token" } },
    (request) => services(userOf(request)).hosts.revokeAgent(idOf(request)),
  )
}
