import test from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { entries, finished, startTask, statusesOf, task } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

test('P27 a cancel ends running executions, and pending ones never start', async (t) => {
  const server = await startTestServer(t)
  const identities = [await server.enroll('web1'), await server.enroll('web2')]
  const agents = await Promise.all(identities.map((identity) => ScriptedAgent.link(server, identity)))
  const taskId = await startTask(
    server,
    identities.map(({ hostId }) => hostId),
    { strategy: 'SEQUENTIAL' },
  )
  await agents[0]?.execution(taskId)
  const answer = await server.data('POST', `/api/tasks/${taskId}/cancel`)
  t.deepEqual(statusesOf(answer), ['RUNNING', 'CANCELLED'])
  await agents[0]?.next('CANCEL_SCRIPT')
  agents[0]?.output(taskId, 0, 'ended by TERM')
  agents[0]?.complete(taskId, 143, { lastSequence: 0, status: 'CANCELLED' })
  const ended = await finished(server, taskId)
  t.is(ended.status, 'CANCELLED')
  t.deepEqual(statusesOf(ended), ['CANCELLED', 'CANCELLED'])
  t.is(ended.results[0]?.exitCode, 143)
  t.is(ended.results[0]?.signal, 'SIGTERM')
  t.is((await entries(server, taskId))[0]?.data, 'ended by TERM')
  await agents[1]?.settled()
  t.false(agents[1]?.heard.some(({ type }) => type === 'EXECUTE_SCRIPT'))
})

test('a cancel of a finished task is a 409; a repeated cancel changes nothing', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  const taskId = await startTask(server, [identity.hostId])
  await agent.execution(taskId)
  await server.data('POST', `/api/tasks/${taskId}/cancel`)
  await server.data('POST', `/api/tasks/${taskId}/cancel`)
  agent.complete(taskId, 143, { lastSequence: -1 })
  await finished(server, taskId)
  t.is((await server.api('POST', `/api/tasks/${taskId}/cancel`)).status, 409)
  t.is((await server.api('POST', '/api/tasks/nosuch/cancel')).status, 404)
})

test('P27 a disconnected agent receives the cancel when it returns', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  const taskId = await startTask(server, [identity.hostId])
  await agent.execution(taskId)
  await agent.cut()
  await server.data('POST', `/api/tasks/${taskId}/cancel`)
  await server.restart()
  const again = await ScriptedAgent.link(server, identity, {
    tasks: [{ taskId, state: 'RUNNING', lastSequence: -1 }],
  })
  t.is((await again.next('CANCEL_SCRIPT')).taskId, taskId)
  again.complete(taskId, 143, { lastSequence: -1 })
  t.is((await finished(server, taskId)).results[0]?.status, 'CANCELLED')
})

test('P27 if the execution itself was lost, the cancel is sent before it', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  const taskId = await startTask(server, [identity.hostId])
  await agent.execution(taskId)
  await agent.cut()
  await server.data('POST', `/api/tasks/${taskId}/cancel`)
  const again = await ScriptedAgent.link(server, identity)
  await again.next('CANCEL_SCRIPT')
  const order = again.heard.map(({ type }) => type)
  await again.execution(taskId)
  t.false(
    order.includes('EXECUTE_SCRIPT') && order.indexOf('EXECUTE_SCRIPT') < order.indexOf('CANCEL_SCRIPT'),
  )
  again.complete(taskId, 0, { status: 'CANCELLED', lastSequence: -1 })
  t.is((await finished(server, taskId)).status, 'CANCELLED')
})

test('a task that waits for a host is cancelled at once', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const taskId = await startTask(server, [identity.hostId])
  const answer = await server.data('POST', `/api/tasks/${taskId}/cancel`)
  t.deepEqual(statusesOf(answer), ['CANCELLED'])
  t.is((await finished(server, taskId)).status, 'CANCELLED')
  const agent = await ScriptedAgent.link(server, identity)
  await agent.settled()
  t.false(agent.heard.some(({ type }) => type === 'EXECUTE_SCRIPT'))
})

test('P27 a cancel that a base-protocol agent cannot carry out ends LOST; its end becomes the late result', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { storeId: null })
  const taskId = await startTask(server, [identity.hostId])
  await agent.execution(taskId)
  await server.data('POST', `/api/tasks/${taskId}/cancel`)
  const ended = await finished(server, taskId)
  t.is(ended.status, 'CANCELLED')
  t.is(ended.results[0]?.status, 'LOST')
  agent.complete(taskId, 0)
  await agent.settled()
  let [result] = (await task(server, taskId)).results
  for (let tries = 0; !result?.lateResult && tries < 100; tries++)
    [result] = (await task(server, taskId)).results
  t.is(result?.status, 'LOST')
  t.is(result?.lateResult?.status, 'SUCCESS')
  t.deepEqual(
    agent.heard.map(({ type }) => type).filter((type) => type !== 'ERROR'),
    ['EXECUTE_SCRIPT'],
  )
})

test('when cancel and end coincide, the first on disk wins, and nothing hangs', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  for (let round = 0; round < 10; round++) {
    const taskId = await startTask(server, [identity.hostId])
    await agent.execution(taskId)
    agent.complete(taskId, 0, { lastSequence: -1 })
    const { status } = await server.api('POST', `/api/tasks/${taskId}/cancel`)
    t.true(status === 200 || status === 409)
    const ended = await finished(server, taskId)
    t.true(['SUCCESS', 'CANCELLED'].includes(ended.status))
    t.is(ended.results[0]?.status, ended.status as 'SUCCESS' | 'CANCELLED')
  }
})

test('after a cancel a nonzero exit code is not a success, whatever status the agent reports', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  const taskId = await startTask(server, [identity.hostId])
  await agent.execution(taskId)
  await server.data('POST', `/api/tasks/${taskId}/cancel`, {})
  agent.complete(taskId, 9, { status: 'SUCCESS', lastSequence: -1 })
  const { status, results } = await finished(server, taskId)
  t.is(status, 'CANCELLED')
  t.like(results[0], { status: 'FAILED', exitCode: 9, error: 'its agent says SUCCESS with exit code 9' })
})
