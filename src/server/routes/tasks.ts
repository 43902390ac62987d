import { Readable } from 'node:stream'
import { PageOf, PageQuery } from '../../core/protocol/http/common.ts'
import { TaskFile } from '../../core/protocol/http/files.ts'
import { CarriedBytes, LogEntry, LogPage, LogQuery } from '../../core/protocol/http/logs.ts'
import {
  ExecutionAnswer,
  ResultsQuery,
  Task,
  TaskCreate,
  TaskQuery,
  TaskResult,
  TaskRetry,
  TaskScript,
  TaskSummary,
} from '../../core/protocol/http/tasks.ts'
import { taskCalls } from '../../core/services.ts'
import type { AppInstance } from '../http/app.ts'
import { userOf } from '../http/auth.ts'
import { hostIdOf, operation, taskIdOf } from '../http/operation.ts'
import { notFound } from '../services/context.ts'
import { checkBefore, followLog, plainLog } from '../services/logs/logs.ts'
import { resumed, sendBytes } from './bytes.ts'
import type { RouteDependencies } from './dependencies.ts'
import { sendEvents } from './events.ts'
import { idempotencyHeader, serve } from './serve.ts'

const read = { users: 'read' } as const
const execute = { users: 'execute' } as const
const exists = 'tasks' as const
const tag = 'tasks' as const
const noun = { noun: exists, tag, read, write: execute } as const

export function taskRoutes(
  app: AppInstance,
  { services: { tasks, files }, context }: RouteDependencies,
): void {
  const record = async (taskId: string) => {
    const task = await context.store.get('tasks', taskId)
    if (!task) throw notFound('task', taskId)
    return task
  }

  serve(app, taskCalls, tasks, noun, {
    list: {
      id: 'listTasks',
      summary: 'List tasks, newest first',
      query: TaskQuery,
      answer: PageOf(TaskSummary),
    },
    create: {
      id: 'createTask',
      summary: 'Run a stored script or an ad-hoc command on hosts, a cluster or a selector',
      body: TaskCreate,
      answer: ExecutionAnswer,
      errors: ['conflict', 'gone'],
      headers: idempotencyHeader,
    },
    get: {
      id: 'getTask',
      summary: 'Read a task and its results, in the order of the plan',
      query: ResultsQuery,
      answer: Task,
    },
    script: {
      id: 'getTaskScript',
      summary: 'The script that ran, with its params; only the names of secret ones',
      answer: TaskScript,
    },
  })
  app.get(
    '/api/tasks/:taskId/logs',
    operation({
      id: 'getTaskLogs',
      tag,
      summary: "Read or follow a task's output",
      allow: read,
      exists,
      query: LogQuery,
      answer: LogPage,
      media: {
        'text/event-stream': {
          holds: 'With follow=true: events output, host, task, carried and end, until the task has ended.',
          events: {
            output: LogEntry,
            host: TaskResult,
            task: TaskSummary,
            carried: CarriedBytes,
            end: Task,
          },
          example:
            'event: output\nid: 131\ndata: {"id":131,"hostId":7,"hostname":"web1","stream":"stdout","sequence":0,"timestamp":"2026-03-02T09:30:12.640Z","data":"restarted nginx\\n"}\n\n',
        },
        'text/plain': {
          holds: 'With Accept: text/plain: the plain output of one host.',
          example: 'Linux web1 6.1.0\n',
        },
      },
      headers: {
        'Last-Event-ID': 'With follow=true: id of the last output received; the stream continues after it.',
      },
    }),
    async (request, reply) => {
      const query = request.query
      checkBefore(query)
      const accept = request.headers.accept ?? ''
      if (query.follow) {
        const lastId = Number(request.headers['last-event-id'])
        const from = Number.isSafeInteger(lastId) && lastId > 0 ? { ...query, after: lastId } : query
        const task = await record(taskIdOf(request))
        return sendEvents(request, reply, context, (signal) => followLog(context, task, from, signal))
      }
      if (/\btext\/plain\b/.test(accept)) {
        const text = plainLog(context, await record(taskIdOf(request)), query)
        const first = await text.next()
        reply.type('text/plain; charset=utf-8')
        return reply.send(Readable.from(resumed(first, text)))
      }
      return tasks.logs(userOf(request), taskIdOf(request), query)
    },
  )
  serve(app, taskCalls, tasks, noun, {
    files: {
      id: 'listTaskFiles',
      summary: 'List the files that a task fetches from its hosts, in the order of the plan',
      allow: execute,
      query: PageQuery,
      answer: PageOf(TaskFile),
    },
  })
  app.get(
    '/api/tasks/:taskId/files/:hostId',
    operation({
      id: 'getTaskFile',
      tag,
      summary: 'Download the file that a task fetched from a host',
      allow: execute,
      exists,
      media: {
        'application/octet-stream': {
          holds: 'The file, or the part requested by Range',
          example: 'text',
        },
        'application/x-tar': 'The tree, if the task fetches one',
      },
      headers: { Range: 'One byte range; for several, the answer is the whole file' },
      audit: { action: 'task.file', object: 'task' },
    }),
    async (request, reply) => {
      const taskId = taskIdOf(request)
      const file = await files.fetched(taskId, hostIdOf(request))
      const { fetch } = await record(taskId)
      return sendBytes(request, reply, {
        size: file.size ?? 0,
        sha256: file.sha256 ?? '',
        type: fetch?.kind === 'TREE' ? 'application/x-tar' : 'application/octet-stream',
        rate: null,
        read: (from, to) => context.files.read(file, from, to),
      })
    },
  )
  serve(app, taskCalls, tasks, noun, {
    cancel: {
      id: 'cancelTask',
      summary: 'Cancel a task: queued hosts do not start, running process trees are killed',
      answer: Task,
      errors: ['conflict'],
      usesReserve: true,
    },
    retry: {
      id: 'retryTask',
      summary: 'Run a task again on the hosts that did not succeed: a new task',
      body: TaskRetry,
      answer: ExecutionAnswer,
      errors: ['conflict', 'gone'],
      headers: idempotencyHeader,
    },
  })
}
