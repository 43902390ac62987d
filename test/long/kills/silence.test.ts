import { setTimeout as delay } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import type { TaskResult } from '../../../src/core/tasks/task.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { followEvents } from '../../helpers/clients/follow.ts'
import { finished, startTask, task } from '../../helpers/clients/tasks.ts'
import { ShiftedClock } from '../../helpers/faults/shifted-clock.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'

async function oneAgent(t: ExecutionContext, storeId: string | null = 'store-1') {
  const clock = new ShiftedClock()
  const server = await startTestServer(t, { clock })
  // A session would expire in the hours by which the clock is moved.
  server.token = (await server.data('POST', '/api/tokens', { name: 'days', admin: true })).token
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { storeId })
  await agent.settled()
  return { clock, server, identity, agent }
}

/** Waits until the server has checked silent executions since the link was lost: then it reports the host as not connected. */
async function lookedAt(server: TestServer, taskId: string): Promise<TaskResult> {
  const url = `${server.url}/api/tasks/${taskId}/logs?follow=true`
  const headers = { authorization: `Bearer ${server.token}` }
  const events = await followEvents(
    url,
    headers,
    ({ event, data }) => event === 'host' && data.error !== null,
  )
  return events.at(-1)?.data as TaskResult
}

const minutes = 60
const hours = 3600
/** Milliseconds after which the server has checked the RUNNING executions. */
const silenceSweep = 5200

/** Lets the server check for over a minute a host that stays linked and reports nothing of its execution. */
async function lookOn(clock: ShiftedClock): Promise<void> {
  for (let n = 0; n < 4; n++) {
    clock.forward(20)
    await delay(silenceSweep)
  }
}

for (const [what, timeout, limit] of [
  ['its timeout plus 10 minutes', 60, 60 + 10 * minutes],
  ['24 hours, without a timeout', 0, 24 * hours],
] as const)
  test(`an execution without a report for ${what} is LOST, but not earlier; a later report is its late result`, async (t) => {
    const { clock, server, identity, agent } = await oneAgent(t)
    const taskId = await startTask(server, [identity.hostId], { timeout })
    await agent.execution(taskId)
    agent.output(taskId, 0, 'begun')
    await agent.acknowledged(taskId, 0)
    await agent.cut()
    clock.forward(limit - 120)
    t.like(await lookedAt(server, taskId), { status: 'RUNNING', stdoutBytes: 5 })
    clock.forward(240)
    const [lost] = (await finished(server, taskId)).results
    t.like(lost, { status: 'LOST', exitCode: null, outputComplete: false, stdoutBytes: 5 })
    t.regex(lost?.error ?? '', /^no report for \d+ s; 5 bytes of its output are stored$/)
    const back = await ScriptedAgent.link(server, identity, {
      tasks: [{ taskId, state: 'EXITED', lastSequence: 1 }],
    })
    await back.acknowledged(taskId, 1)
    back.complete(taskId, 0, { lastSequence: 1 })
    await back.released(taskId)
    const [after] = (await task(server, taskId)).results
    t.like(after, { status: 'LOST', exitCode: null })
    t.like(after?.lateResult, { status: 'SUCCESS', exitCode: 0 })
  })

test('an execution of a silent base-protocol agent becomes LOST after the same time', async (t) => {
  const { clock, server, identity, agent } = await oneAgent(t, null)
  const taskId = await startTask(server, [identity.hostId], { timeout: 30 })
  await agent.execution(taskId)
  clock.forward(30 + 10 * minutes + 1)
  t.is((await finished(server, taskId)).results[0]?.status, 'LOST')
})

test('P25 the server waits two minutes for announced output that never arrives; the result names what is missing', async (t) => {
  const { clock, server, identity, agent } = await oneAgent(t)
  const taskId = await startTask(server, [identity.hostId], { timeout: 0 })
  await agent.execution(taskId)
  agent.output(taskId, 0, 'begun')
  agent.complete(taskId, 3, { lastSequence: 1e9 })
  await agent.acknowledged(taskId, 0)
  await agent.settled()
  clock.forward(110)
  agent.output(taskId, 1, ' and on')
  await agent.acknowledged(taskId, 1)
  clock.forward(110)
  t.is((await task(server, taskId)).status, 'RUNNING')
  clock.forward(20)
  const [result] = (await finished(server, taskId)).results
  t.like(result, {
    status: 'FAILED',
    exitCode: 3,
    outputComplete: false,
    stdoutBytes: 12,
    error: 'output is missing: its agent announced 1000000001 pieces and sent 2',
  })
  await agent.released(taskId)
})

test('a strategy continues after a host that is LOST by silence, as far as maxFailures allows', async (t) => {
  const { clock, server, identity, agent } = await oneAgent(t)
  const second = await server.enroll('web2')
  const taskId = await startTask(server, [identity.hostId, second.hostId], {
    strategy: 'SEQUENTIAL',
    maxFailures: 1,
    timeout: 1,
    queueSeconds: 600_000,
  })
  await agent.execution(taskId)
  await agent.cut()
  clock.forward(1 + 10 * minutes + 1)
  const other = await ScriptedAgent.link(server, second)
  await other.execution(taskId)
  other.complete(taskId, 0, { lastSequence: -1 })
  const { results } = await finished(server, taskId)
  t.deepEqual(
    results.map(({ status }) => status),
    ['LOST', 'SUCCESS'],
  )
})

test('an execution with gates becomes LOST after the sum of all its timeouts and pauses, plus 10 minutes', async (t) => {
  const clock = new ShiftedClock()
  const server = await startTestServer(t, { clock })
  server.token = (await server.data('POST', '/api/tokens', { name: 'days', admin: true })).token
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { capabilities: { gates: true } })
  await agent.settled()
  const gates = {
    verify: { script: { content: 'true' }, retries: 2, intervalSeconds: 1000, timeout: 100 },
    rollback: { script: { content: 'true', timeout: 50 } },
  }
  const taskId = await startTask(server, [identity.hostId], { ...gates, timeout: 60 })
  await agent.execution(taskId)
  await agent.cut()
  const sum = 60 + 3 * 100 + 2 * 1000 + 50
  clock.forward(sum + 600 - 60)
  // The answer comes after the sweep that would have ended it.
  t.is((await task(server, taskId)).results[0]?.status, 'RUNNING')
  clock.forward(180)
  const [result] = (await finished(server, taskId)).results
  t.like(result, { status: 'LOST', verify: null, rollback: null })
})

test('a follower learns that a host lost its link; the message is cleared once the host is back', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { storeId: 'journal' })
  const taskId = await startTask(server, [identity.hostId])
  await agent.execution(taskId)
  await agent.cut()
  const url = `${server.url}/api/tasks/${taskId}/logs?follow=true`
  const headers = { authorization: `Bearer ${server.token}` }
  const heard = await followEvents(url, headers, ({ event, data }) => event === 'host' && data.error !== null)
  t.like(heard.at(-1)?.data, { hostname: 'web1', status: 'RUNNING' })
  t.regex(heard.at(-1)?.data.error, /is not connected/)
  const back = await ScriptedAgent.link(server, identity, {
    storeId: 'journal',
    tasks: [{ taskId, state: 'RUNNING', lastSequence: -1 }],
  })
  back.complete(taskId, 0, { lastSequence: -1 })
  const end = await finished(server, taskId)
  t.like(end.results[0], { status: 'SUCCESS', error: null })
})

test('a linked host that reports no end does not block its schedule: it becomes LOST after its timeout, and the next slot runs', async (t) => {
  const { clock, server, identity, agent } = await oneAgent(t)
  const { id } = await server.data('POST', '/api/schedules', {
    name: 'often',
    everySeconds: 1,
    script: { content: 'true', timeout: 3 },
    target: { hostIds: [identity.hostId] },
  })
  const { taskId } = await agent.next('EXECUTE_SCRIPT')
  await delay(silenceSweep)
  for (let n = 0; n < 3; n++) {
    clock.forward(200)
    agent.socket.ping()
    await agent.settled()
  }
  await delay(silenceSweep)
  t.is((await task(server, taskId)).status, 'RUNNING')
  await lookOn(clock)
  const [lost] = (await finished(server, taskId)).results
  t.is(lost?.status, 'LOST')
  t.regex(lost?.error ?? '', /^its agent reported no end within the timeout plus 10 minutes/)
  t.not((await agent.next('EXECUTE_SCRIPT')).taskId, taskId)
  t.is((await agent.next('CANCEL_SCRIPT')).taskId, taskId, 'a copy that is still queued must not start')
  agent.complete(taskId, 0, { lastSequence: -1 })
  await agent.released(taskId)
  t.like((await task(server, taskId)).results[0]?.lateResult, { status: 'SUCCESS', exitCode: 0 })
  await server.data('PATCH', `/api/schedules/${id}`, { enabled: false })
})

test('a linked host that ignores a cancel becomes LOST a minute later, also without a timeout', async (t) => {
  const { clock, server, identity, agent } = await oneAgent(t)
  const taskId = await startTask(server, [identity.hostId], { timeout: 0 })
  await agent.execution(taskId)
  await server.data('POST', `/api/tasks/${taskId}/cancel`)
  await delay(silenceSweep)
  t.is((await task(server, taskId)).status, 'RUNNING')
  await lookOn(clock)
  const [lost] = (await finished(server, taskId)).results
  t.like(lost, {
    status: 'LOST',
    error: 'cancelled, but its agent reported no end; it may still be running there',
  })
})
