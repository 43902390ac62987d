import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { followEvents, textOf } from '../helpers/clients/follow.ts'
import { said, shownErrors } from '../helpers/programs/said.ts'
import { startTestServer, type TestServer } from '../helpers/servers/server.ts'

const program = fileURLToPath(new URL('../fixtures/base-agent.js', import.meta.url))

/** Starts the base-protocol agent as a separate process; returns the lines it prints about the messages it receives. */
async function startBaseAgent(t: ExecutionContext, server: TestServer, hostname: string): Promise<string[]> {
  const { token } = await server.data('POST', '/api/enrollment-tokens', {})
  const child = spawn(process.execPath, [program, server.url, token, hostname], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  const lines: string[] = []
  const output = createInterface({ input: child.stdout })
  output.on('line', (line) => lines.push(line))
  shownErrors(child)
  await said(child)
  return lines
}

test('P10 an agent written from docs/reference/base-api.md alone runs its pending task and reports the right result', async (t) => {
  const server = await startTestServer(t)
  const messages = await startBaseAgent(t, server, 'old1')
  const host = (await server.data('GET', '/api/hosts')).content[0]
  t.is(host.status, 'ONLINE')
  t.is(host.agent.connected, false)

  const script = await server.data('POST', '/api/scripts', {
    name: 'greet',
    type: 'BASH',
    content: 'echo "hello $WHO"; echo oops >&2; exit 3',
  })
  const started = await server.data('POST', `/api/scripts/${script.id}/execute`, {
    hostIds: [host.id],
    params: { WHO: "it's $(you)" },
  })
  t.is(started.status, 'RUNNING')
  t.is(started.hostCount, 1)

  const events = await followEvents(`${server.url}/api/tasks/${started.taskId}/logs?follow=true`, {
    authorization: `Bearer ${server.token}`,
  })
  t.is(events[0]?.event, 'task')
  t.is(events.at(-1)?.event, 'end')
  t.is(textOf(events.filter(({ data }) => data.stream === 'stdout')), "hello it's $(you)\n")
  t.is(textOf(events.filter(({ data }) => data.stream === 'stderr')), 'oops\n')

  const task = await server.data('GET', `/api/tasks/${started.taskId}`)
  t.is(task.status, 'FAILED')
  t.is(task.results[0].status, 'FAILED')
  t.is(task.results[0].exitCode, 3)
  t.true(task.results[0].outputComplete)
  t.is(task.results[0].stdoutBytes, "hello it's $(you)\n".length)
  t.deepEqual([...new Set(messages.slice(1))], ['got EXECUTE_SCRIPT'])
})

test('a cancel that a base-protocol agent cannot execute makes the result LOST, with the reason', async (t) => {
  const server = await startTestServer(t)
  await startBaseAgent(t, server, 'old2')
  const started = await server.data('POST', '/api/tasks', {
    script: { content: 'echo begun; sleep 1; echo done' },
    target: { selector: 'old2' },
  })
  const url = `${server.url}/api/tasks/${started.taskId}/logs?follow=true`
  const headers = { authorization: `Bearer ${server.token}` }
  await followEvents(url, headers, ({ event }) => event === 'output')
  const cancelled = await server.data('POST', `/api/tasks/${started.taskId}/cancel`)
  t.is(cancelled.results[0].status, 'LOST')
  t.regex(cancelled.results[0].error, /cannot end scripts/)
  await followEvents(url, headers)
  const task = await server.data('GET', `/api/tasks/${started.taskId}`)
  t.is(task.status, 'CANCELLED')
})
