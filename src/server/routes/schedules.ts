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
import { scheduleCalls } from '../../core/services.ts'
import type { AppInstance } from '../http/app.ts'
import type { RouteDependencies } from './dependencies.ts'
import { serve } from './serve.ts'

const noun = {
  noun: 'schedules',
  tag: 'schedules',
  read: { users: 'read' },
  write: { users: 'execute' },
} as const

export function scheduleRoutes(app: AppInstance, { services: { schedules } }: RouteDependencies): void {
  serve(app, scheduleCalls, schedules, noun, {
    list: {
      id: 'listSchedules',
      summary: 'List schedules, without their texts unless name asks for one',
      query: ScheduleQuery,
      answer: PageOf(ScheduleSummary),
    },
    create: {
      id: 'createSchedule',
      summary: 'Create a schedule: a script, its targets, and when it runs',
      body: ScheduleCreate,
      answer: Schedule,
      created: true,
      errors: ['conflict'],
    },
    get: { id: 'getSchedule', summary: 'Read a schedule', answer: Schedule },
    update: {
      id: 'updateSchedule',
      summary: 'Change, pause or resume a schedule: its owner or an ADMIN',
      body: SchedulePatch,
      answer: Schedule,
      errors: ['conflict'],
    },
    remove: {
      id: 'deleteSchedule',
      summary: 'Delete a schedule and its history: its owner or an ADMIN; its tasks stay',
      answer: IdOnly,
    },
    run: {
      id: 'runSchedule',
      summary: 'Run a schedule now, with the rights of the caller',
      answer: Started,
      errors: ['gone'],
    },
    next: {
      id: 'getScheduleNext',
      summary: 'The next times of a schedule, whether or not it is paused',
      query: NextQuery,
      answer: ScheduleTimes,
    },
    history: {
      id: 'listScheduleHistory',
      summary: 'Slots that a schedule ran or skipped, and why: the newest 100, newest first',
      query: PageQuery,
      answer: PageOf(ScheduleSlot),
    },
  })
}
