import { Readable } from 'node:stream'
import { LogQuery, ResultsQuery, TaskCreate, TaskQuery } from '../../core/protocol/http/tasks.ts'
import type { AppInstance } from '../app.ts'
import { userOf } from '../auth.ts'
import { sha256 } from '../digest.ts'
import { notFound } from '../services/context.ts'
import { followLog } from '../services/follow.ts'
import { plainLog } from '../services/logs.ts'
import { sendEvents } from './event-stream.ts'
import { idempotencyKeyOf } from './idempotency-key.ts'
import { taskIdOf } from './path.ts'
import type { RouteDependencies } from './routes.ts'

const read = { users: 'read' } as const
const execute = { users: 'execute' } as const
const exists = 'tasks' as const

export function taskRoutes(app: AppInstance, { services, context }: RouteDependencies): void {
  const record = async (taskId: string) => {
    const task = await context.store.get('tasks', taskId)
    if (!task) throw notFound('task', taskId)
    return task
  }

  app.get(
    '/api/tasks',
    { config: { allow: read }, schema: { summary: 'List tasks, newest first', querystring: TaskQuery } },
    (request) => services(userOf(request)).tasks.list(request.query),
  )
  app.post(
    '/api/tasks',
    {
      config: { allow: execute },
      schema: { summary: 'Run a script or an ad-hoc command', body: TaskCreate },
    },
    (request) => services(userOf(request)).tasks.create(request.body, idempotencyKeyOf(request)),
  )
  app.get(
    '/api/tasks/:taskId',
    {
      config: { allow: read, exists },
      schema: { summary: 'Read a task and its results', querystring: ResultsQuery },
    },
    (request) => services(userOf(request)).tasks.get(taskIdOf(request), request.query),
  )
  app.get(
    '/api/tasks/:taskId/script',
    { config: { allow: read, exists }, schema: { summary: 'The text that ran' } },
    async (request) => {
      const task = await record(taskIdOf(request))
      const content = await context.engine.script(task)
      const { id: taskId, scriptId, scriptVersion, scriptName, type, params } = task
      return { taskId, scriptId, scriptVersion, scriptName, type, content, sha256: sha256(content), params }
    },
  )
  app.get(
    '/api/tasks/:taskId/logs',
    {
      config: { allow: read, exists },
      schema: { summary: "Read or follow a task's output", querystring: LogQuery },
    },
    async (request, reply) => {
      const query = request.query
      const accept = request.headers.accept ?? ''
      if (query.follow) {
        const lastId = Number(request.headers['last-event-id'])
        const from = Number.isSafeInteger(lastId) && lastId > 0 ? { ...query, after: lastId } : query
        const task = await record(taskIdOf(request))
        return sendEvents(request, reply, context.bus, (signal) => followLog(context, task, from, signal))
      }
      if (/\btext\/plain\b/.test(accept)) {
        const text = plainLog(context, await record(taskIdOf(request)), query)
        const first = await text.next()
        reply.type('text/plain; charset=utf-8')
        return reply.send(Readable.from(resumed(first, text)))
      }
      return services(userOf(request)).tasks.logs(taskIdOf(request), query)
    },
  )
  app.post(
    '/api/tasks/:taskId/cancel',
    { config: { allow: execute, exists }, schema: { summary: 'Cancel a task' } },
    (request) => services(userOf(request)).tasks.cancel(taskIdOf(request)),
  )
}

/** A generator whose first value was taken early, so that its faults are still an answer and not a broken stream. */
async function* resumed(first: IteratorResult<string>, rest: AsyncGenerator<string>): AsyncGenerator<string> {
  if (first.done) return
  yield first.value
  yield* rest
}
