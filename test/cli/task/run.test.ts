import test from 'ava'
import { followTask } from '../../../src/cli/task/run.ts'
import { TaskDisplay } from '../../../src/cli/task/task-display.ts'
import { openClient } from '../../../src/client/client.ts'
import { RsmError } from '../../../src/core/errors.ts'
import { envelope, resultOf, startFakeServer, taskOf } from '../../fixtures/fake-server.ts'

const running = taskOf([resultOf('web1', { status: 'RUNNING', exitCode: null, completedAt: null })], {
  status: 'RUNNING',
  completedAt: null,
  duration: null,
})

const resume = (taskId: string) => `rsm logs -f ${taskId}`

for (const [what, answer, code, said] of [
  ['an event that cannot be read', 'event: task\ndata: {\n\n', 'internal', /not like an rsm server/],
  ['an event without its fields', 'event: output\ndata: {"id":1}\n\n', 'internal', /not like an rsm server/],
  ['a task that was removed', 410, 'gone', /refused/],
] as const)
  test(`an error after the start names the task: ${what}`, async (t) => {
    const server = await startFakeServer(t, {
      'POST /api/tasks': () => ({ taskId: running.taskId, status: 'RUNNING', hostCount: 1 }),
      [`GET /api/tasks/${running.taskId}/logs`]: (_seen, response) => {
        if (typeof answer === 'number') envelope(response, answer, {})
        else response.writeHead(200, { 'content-type': 'text/event-stream' }).write(answer)
      },
    })
    const client = await openClient({ url: server.url, token: 'secret' })
    const show = { format: undefined, files: [], diff: false, prefix: true, raw: false }
    const following = followTask({
      client,
      outputs: new TaskDisplay({ show, quiet: true, progress: false }),
      signals: 'cancel',
      resume,
      halted: () => {},
      start: async () => ({ taskId: running.taskId, hostCount: 1 }),
    })
    const error = await t.throwsAsync(following, { instanceOf: RsmError, code })
    t.regex(error.message, said)
    t.true(error.message.endsWith(`(task ${running.taskId} was started)`))
    t.true(error.hint?.endsWith(`follow it: rsm logs -f ${running.taskId}`))
  })
