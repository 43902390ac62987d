import { PageQuery } from '../../core/protocol/http/common.ts'
import { EnrollmentCreate } from '../../core/protocol/http/hosts.ts'
import type { AppInstance } from '../app.ts'
import { userOf } from '../auth.ts'
import { idOf } from './path.ts'
import type { RouteDependencies } from './routes.ts'

const allow = { users: 'administer' } as const

export function enrollmentRoutes(app: AppInstance, { services }: RouteDependencies): void {
  app.get(
    '/api/enrollment-tokens',
    { config: { allow }, schema: { summary: 'List enrolment tokens', querystring: PageQuery } },
    (request) => services(userOf(request)).enrollments.list(request.query),
  )
  app.post(
    '/api/enrollment-tokens',
    { config: { allow }, schema: { summary: 'Make an enrolment token', body: EnrollmentCreate } },
    (request, reply) => {
      reply.code(201)
      return services(userOf(request)).enrollments.create(request.body)
    },
  )
  app.delete(
    '/api/enrollment-tokens/:id',
    { config: { allow, exists: 'enrollments' }, schema: { summary: 'Delete an enrolment token' } },
    (request) => services(userOf(request)).enrollments.remove(idOf(request)),
  )
}
