import { ScriptCreate, ScriptPatch, ScriptQuery } from '../../core/protocol/http/scripts.ts'
import { ScriptExecute } from '../../core/protocol/http/tasks.ts'
import type { AppInstance } from '../app.ts'
import { userOf } from '../auth.ts'
import { idempotencyKeyOf } from './idempotency-key.ts'
import { idOf } from './path.ts'
import type { RouteDependencies } from './routes.ts'

const read = { users: 'read' } as const
const change = { users: 'change' } as const
const execute = { users: 'execute' } as const
const exists = 'scripts' as const

export function scriptRoutes(app: AppInstance, { services }: RouteDependencies): void {
  app.get(
    '/api/scripts',
    { config: { allow: read }, schema: { summary: 'List scripts', querystring: ScriptQuery } },
    (request) => services(userOf(request)).scripts.list(request.query),
  )
  app.post(
    '/api/scripts',
    { config: { allow: change }, schema: { summary: 'Create a script', body: ScriptCreate } },
    (request, reply) => {
      reply.code(201)
      return services(userOf(request)).scripts.create(request.body)
    },
  )
  app.get(
    '/api/scripts/:id',
    { config: { allow: read, exists }, schema: { summary: 'Read a script' } },
    (request) => services(userOf(request)).scripts.get(idOf(request)),
  )
  app.patch(
    '/api/scripts/:id',
    { config: { allow: change, exists }, schema: { summary: 'Change a script', body: ScriptPatch } },
    (request) => services(userOf(request)).scripts.update(idOf(request), request.body),
  )
  app.delete(
    '/api/scripts/:id',
    { config: { allow: change, exists }, schema: { summary: 'Delete a script' } },
    (request) => services(userOf(request)).scripts.remove(idOf(request)),
  )
  app.post(
    '/api/scripts/:id/execute',
    { config: { allow: execute, exists }, schema: { summary: 'Run a script on hosts', body: ScriptExecute } },
    (request) =>
      services(userOf(request)).tasks.executeScript(idOf(request), request.body, idempotencyKeyOf(request)),
  )
}
