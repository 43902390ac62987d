import { IdOnly, PageOf, PageQuery } from '../../core/protocol/http/common.ts'
import {
  NextQuery,
  Schedule,
  ScheduleCreate,
  SchedulePatch,
  ScheduleQuery,
  ScheduleSlot,
  ScheduleSummary,
  ScheduleTimes,
} from '../../core/protocol/http/schedules.ts'
import { Started } from '../../core/protocol/http/tasks.ts'
import type { AppInstance } from '../http/app.ts'
import { userOf } from '../http/auth.ts'
import { idOf, operation } from '../http/operation.ts'
import type { RouteDependencies } from './dependencies.ts'
import { starterOf } from './starting.ts'

const read = { users: 'read' } as const
const execute = { users: 'execute' } as const
const exists = 'schedules' as const
const tag = 'schedules' as const

export function scheduleRoutes(app: AppInstance, { services: { schedules } }: RouteDependencies): void {
  app.get(
    '/api/schedules',
    operation({
      id: 'listSchedules',
      tag,
      summary: 'List schedules, without their texts unless name asks for one',
      allow: read,
      query: ScheduleQuery,
      answer: PageOf(ScheduleSummary),
    }),
    (request) => schedules.list(userOf(request), request.query),
  )
  app.post(
    '/api/schedules',
    operation({
      id: 'createSchedule',
      tag,
      summary: 'Create a schedule: a script, its targets, and when it runs',
      allow: execute,
      body: ScheduleCreate,
      answer: Schedule,
      created: true,
      errors: ['conflict'],
      audit: { action: 'schedule.create', object: 'schedule' },
    }),
    (request) => schedules.create(userOf(request), request.body),
  )
  app.get(
    '/api/schedules/:id',
    operation({ id: 'getSchedule', tag, summary: 'Read a schedule', allow: read, exists, answer: Schedule }),
    (request) => schedules.get(userOf(request), idOf(request)),
  )
  app.patch(
    '/api/schedules/:id',
    operation({
      id: 'updateSchedule',
      tag,
      summary: 'Change, pause or resume a schedule: its owner or an ADMIN',
      allow: execute,
      exists,
      body: SchedulePatch,
      answer: Schedule,
      errors: ['conflict'],
      audit: { action: 'schedule.update', object: 'schedule' },
    }),
    (request) => schedules.update(userOf(request), idOf(request), request.body),
  )
  app.delete(
    '/api/schedules/:id',
    operation({
      id: 'deleteSchedule',
      tag,
      summary: 'Delete a schedule and its history: its owner or an ADMIN; its tasks stay',
      allow: execute,
      exists,
      answer: IdOnly,
      usesReserve: true,
      audit: { action: 'schedule.delete', object: 'schedule' },
    }),
    (request) => schedules.remove(userOf(request), idOf(request)),
  )
  app.post(
    '/api/schedules/:id/run',
    operation({
      id: 'runSchedule',
      tag,
      summary: 'Run a schedule now, with the rights of the caller',
      allow: execute,
      exists,
      answer: Started,
      errors: ['gone'],
      audit: { action: 'schedule.run', object: 'schedule' },
    }),
    (request) => schedules.run(starterOf(request), idOf(request)),
  )
  app.get(
    '/api/schedules/:id/next',
    operation({
      id: 'getScheduleNext',
      tag,
      summary: 'The next times of a schedule, whether or not it is paused',
      allow: read,
      exists,
      query: NextQuery,
      answer: ScheduleTimes,
    }),
    (request) => schedules.next(userOf(request), idOf(request), request.query),
  )
  app.get(
    '/api/schedules/:id/history',
    operation({
      id: 'listScheduleHistory',
      tag,
      summary: 'What a schedule ran and skipped, and why: the newest 100, newest first',
      allow: read,
      exists,
      query: PageQuery,
      answer: PageOf(ScheduleSlot),
    }),
    (request) => schedules.history(userOf(request), idOf(request), request.query),
  )
}
