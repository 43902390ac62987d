import { IdOnly, NamedQuery, PageOf } from '../../core/protocol/http/common.ts'
import { Enrollment, EnrollmentCreate, EnrollmentCreated } from '../../core/protocol/http/enrollments.ts'
import type { AppInstance } from '../http/app.ts'
import { userOf } from '../http/auth.ts'
import { idOf, operation } from '../http/operation.ts'
import type { RouteDependencies } from './dependencies.ts'

const allow = { users: 'administer' } as const
const write = { users: 'administer', lasting: true } as const
const tag = 'enrollment tokens' as const

export function enrollmentRoutes(app: AppInstance, { services: { enrollments } }: RouteDependencies): void {
  app.get(
    '/api/enrollment-tokens',
    operation({
      id: 'listEnrollmentTokens',
      tag,
      summary: 'List enrollment tokens',
      allow,
      query: NamedQuery,
      answer: PageOf(Enrollment),
    }),
    (request) => enrollments.list(userOf(request), request.query),
  )
  app.post(
    '/api/enrollment-tokens',
    operation({
      id: 'createEnrollmentToken',
      tag,
      summary: 'Make an enrollment token; its text is shown only once',
      allow: write,
      body: EnrollmentCreate,
      answer: EnrollmentCreated,
      created: true,
      audit: { action: 'enrollment.create', object: 'enrollment' },
    }),
    (request) => enrollments.create(userOf(request), request.body),
  )
  app.delete(
    '/api/enrollment-tokens/:id',
    operation({
      id: 'deleteEnrollmentToken',
      tag,
      summary: 'Delete an enrollment token; hosts that it enrolled stay',
      allow: write,
      exists: 'enrollments',
      answer: IdOnly,
      usesReserve: true,
      audit: { action: 'enrollment.delete', object: 'enrollment' },
    }),
    (request) => enrollments.remove(userOf(request), idOf(request)),
  )
}
