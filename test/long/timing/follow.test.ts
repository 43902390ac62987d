import test, { type ExecutionContext } from 'ava'
import { Halted } from '../../../src/cli/command/failure.ts'
import { followTask } from '../../../src/cli/task/run.ts'
import { TaskDisplay } from '../../../src/cli/task/task-display.ts'
import { openClient } from '../../../src/client/client.ts'
import { entryOf, eventStream, resultOf, startFakeServer, taskOf } from '../../fixtures/fake-server.ts'

const running = taskOf([resultOf('web1', { status: 'RUNNING', exitCode: null, completedAt: null })], {
  status: 'RUNNING',
  completedAt: null,
  duration: null,
})

const resume = (taskId: string) => `rsm logs -f ${taskId}`

/** Milliseconds: less than the timeout of a call, even on a slow machine. */
const soon = 40_000

/** A server that reports a running task and then stops responding, but keeps its connections. */
async function hung(t: ExecutionContext) {
  const asked: string[] = []
  const ends: Promise<void>[] = []
  let told = () => {}
  const stands = new Promise<void>((resolve) => {
    told = resolve
  })
  const silent =
    (what: string) => (_seen: unknown, response: { once(event: 'close', then: () => void): unknown }) => {
      asked.push(what)
      ends.push(new Promise((resolve) => response.once('close', resolve)))
    }
  const server = await startFakeServer(t, {
    'POST /api/tasks': () => ({ taskId: running.taskId, status: 'RUNNING', hostCount: 1 }),
    [`GET /api/tasks/${running.taskId}/logs`]: (_seen, response) => {
      ends.push(new Promise((resolve) => response.once('close', resolve)))
      const write = eventStream(response)
      write('task', running)
      write('output', entryOf('web1', 'up\n', { id: 1 }), 1)
    },
    [`GET /api/tasks/${running.taskId}`]: silent('get'),
    [`POST /api/tasks/${running.taskId}/cancel`]: silent('cancel'),
  })
  const client = await openClient({ url: server.url, token: 'secret' })
  const show = { format: undefined, files: [], diff: false, prefix: true, raw: false }
  const ended: string[] = []
  class Watched extends TaskDisplay {
    override async event(event: Parameters<TaskDisplay['event']>[0]) {
      await super.event(event)
      if (event.type === 'output') told()
    }
    override async end(task: Parameters<TaskDisplay['end']>[0]) {
      ended.push(task.status)
      await super.end(task)
    }
  }
  const outputs = new Watched({ show, quiet: true, progress: false })
  return { client, outputs, stands, asked, ended, closed: () => Promise.all(ends) }
}

const signalled = (signal: 'SIGINT' | 'SIGTERM') => process.emit(signal, signal)

// Serial: all listen to the signals of one process.
test.serial(
  'SIGTERM ends following in time even if the server hangs, and leaves no call behind',
  async (t) => {
    const { client, outputs, stands, asked, ended, closed } = await hung(t)
    const following = followTask({
      client,
      outputs,
      signals: 'cancel',
      resume,
      halted: () => {},
      start: async (signal) => {
        const [target, script] = [{ selector: 'web1' }, { content: 'true' }]
        const started = await client.tasks.create({ script, target, async: true }, 'key', signal)
        return { taskId: started.taskId, hostCount: 1 }
      },
    })
    await stands
    const began = performance.now()
    signalled('SIGTERM')
    const error = await t.throwsAsync(following, { instanceOf: Halted, message: /is unknown/ })
    await closed()
    t.true(performance.now() - began < soon)
    t.is(error.exit, 143)
    t.deepEqual(asked, ['cancel', 'get'])
    t.deepEqual(ended, ['RUNNING'])
  },
)

test.serial('a signal ends the watching of a task in time even if the server hangs', async (t) => {
  const { client, outputs, stands, asked, ended, closed } = await hung(t)
  const watching = followTask({
    client,
    outputs,
    signals: 'leave',
    resume,
    halted: () => {},
    start: async () => ({ taskId: running.taskId, hostCount: 1 }),
  })
  await stands
  const began = performance.now()
  signalled('SIGINT')
  const error = await t.throwsAsync(watching, { instanceOf: Halted })
  await closed()
  t.true(performance.now() - began < soon)
  t.is(error.exit, 130)
  t.deepEqual(asked, ['get'])
  t.deepEqual(ended, ['RUNNING'])
})
