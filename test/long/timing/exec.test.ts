import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import type { Task } from '../../../src/core/protocol/http/tasks.ts'
import {
  entryOf,
  eventStream,
  type FakeServer,
  resultOf,
  startFakeServer,
  taskOf,
  taskRoutes,
} from '../../fixtures/fake-server.ts'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'

function envFor(t: ExecutionContext, server: FakeServer): Record<string, string> {
  return cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'secret' })
}

const cancels = (server: FakeServer) => server.seen.filter((each) => each.path.endsWith('/cancel')).length

test('SIGTERM ends rsm exec even if its output is not read', async (t) => {
  const server = await startFakeServer(t, {
    ...taskRoutes(taskOf([resultOf('web1')]), []),
    'GET /api/tasks/task-1/logs': (_seen, response) => {
      const write = eventStream(response)
      for (let id = 1; id <= 100; id++)
        write('output', entryOf('web1', `${'x'.repeat(65_000)}\n`, { id }), id)
    },
    'POST /api/tasks/task-1/cancel': () => taskOf([resultOf('web1')]),
  })
  const { child, shows } = startRsm(['exec', '-w', 'web1', 'x'], envFor(t, server))
  await shows('web1: x')
  child.stdout.pause()
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  t.deepEqual(await ended, [143, null])
  t.is(cancels(server), 1)
})

for (const [halt, exit, said] of [
  ['SIGINT', 130, /^rsm: interrupted before the server answered/],
  ['SIGTERM', 143, /^rsm: interrupted before the server answered/],
  ['--deadline', 124, /^rsm: the deadline has passed before the server answered/],
] as const)
  test(`${halt} before the server has responded exits with ${exit}`, async (t) => {
    let asked = () => {}
    const posting = new Promise<void>((resolve) => {
      asked = resolve
    })
    const server = await startFakeServer(t, { 'POST /api/tasks': () => asked() })
    const deadline = halt === '--deadline' ? ['--deadline', '1s'] : []
    const { child, done } = startRsm(['exec', ...deadline, '-w', 'web1', 'x'], envFor(t, server))
    await posting
    if (halt !== '--deadline') child.kill(halt)
    const began = performance.now()
    const ran = await done
    t.true(performance.now() - began < 20_000)
    t.is(ran.exit, exit)
    t.regex(ran.stderr, said)
  })

/** A task that runs until it is cancelled. */
function endless(t: ExecutionContext) {
  const cancelled = taskOf([resultOf('web1', { status: 'CANCELLED', exitCode: null })], {
    status: 'CANCELLED',
  })
  let end = () => {}
  return startFakeServer(t, {
    ...taskRoutes(cancelled, []),
    'GET /api/tasks/task-1/logs': (_seen, response) => {
      const write = eventStream(response)
      write('output', entryOf('web1', 'working\n', { id: 1 }), 1)
      end = () => {
        write('end', cancelled)
        response.end()
      }
    },
    'POST /api/tasks/task-1/cancel': () => {
      end()
      return cancelled
    },
  })
}

// Serial: beside other tests the server in this process may respond late.
test.serial('--deadline cancels the whole task, exits 124 and says why', async (t) => {
  const server = await endless(t)
  const argv = ['exec', '--deadline', '5s', '-w', 'web1']
  const ran = await runRsm([...argv, 'x'], envFor(t, server))
  t.is(ran.exit, 124)
  t.is(cancels(server), 1)
  t.regex(ran.stderr, /^rsm: the deadline of 5 s has passed: task task-1 was cancelled$/m)
  const json = await runRsm([...argv, '--json', 'x'], envFor(t, server))
  t.is(json.exit, 124)
  t.is((JSON.parse(json.stdout) as Task).status, 'CANCELLED')
  t.like(JSON.parse(json.stderr), { error: { exit: 124, code: 'timeout' } })
})

test('a pipe whose reader has stopped does not keep SIGTERM from ending the writer', async (t) => {
  const home = temporaryDirectory(t)
  const path = join(home, 'pipe')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  t.teardown(() => closeSync(reader))
  const task = taskOf([resultOf('web1', { status: 'RUNNING' })], { status: 'RUNNING' })
  const server = await startFakeServer(t, {
    'GET /api/tasks/task-1': () => task,
    'GET /api/tasks/task-1/logs': (_seen, response) => {
      const write = eventStream(response)
      write('task', task)
      const line = `${'x'.repeat(300_000)} written\n`
      write('output', entryOf('web1', line, { id: 1 }), 1)
      write('output', entryOf('web1', line, { id: 2 }), 2)
    },
  })
  const env = cleanEnv(home, { RSM_URL: server.url, RSM_TOKEN: 'secret' })
  const rsm = startRsm(['logs', '-f', 'task-1', '-o', `ndjson=${path}`], env)
  await rsm.shows('written')
  rsm.child.kill('SIGTERM')
  t.is((await rsm.done).exit, 143)
})
