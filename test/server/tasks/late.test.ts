import test from 'ava'
import { end, noted } from '../../helpers/agents/noted-link.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask, task } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { startInsides } from '../../helpers/servers/services.ts'
import { until } from '../../helpers/until.ts'

test('F10 simultaneous late results of many LOST hosts are all kept', async (t) => {
  const server = await startTestServer(t)
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  const identities = await Promise.all(names.map((name) => server.enroll(name)))
  const first = await Promise.all(identities.map((identity) => ScriptedAgent.link(server, identity)))
  const taskId = await startTask(
    server,
    identities.map(({ hostId }) => hostId),
  )
  await Promise.all(first.map((agent) => agent.execution(taskId)))
  await Promise.all(first.map((agent) => agent.cut()))
  const storeId = 'another'
  const again = await Promise.all(
    identities.map((identity) => ScriptedAgent.link(server, identity, { storeId })),
  )
  t.is((await finished(server, taskId)).counts.LOST, names.length)
  for (const [at, agent] of again.entries()) agent.complete(taskId, at, { lastSequence: -1 })
  await Promise.all(again.map((agent) => agent.released(taskId)))
  const { results } = await task(server, taskId)
  t.deepEqual(
    results.map(({ lateResult }) => lateResult?.exitCode),
    names.map((_, at) => at),
  )
})

test('F09 a LOST that is reported twice is not a late result', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('a')
  const agent = await ScriptedAgent.link(server, identity)
  const taskId = await startTask(server, [identity.hostId])
  await agent.execution(taskId)
  for (let time = 0; time < 2; time++) {
    agent.complete(taskId, 255, { status: 'LOST', error: 'the host was restarted', lastSequence: -1 })
    await agent.released(taskId)
  }
  const [result] = (await finished(server, taskId)).results
  t.like(result, { status: 'LOST', exitCode: null, lateResult: null })
})

test('a late result of a task that is being removed leaves nothing behind', async (t) => {
  const { services, engine, results, context } = await startInsides(t)
  const { id } = await services.hosts.create({ hostname: 'web1', ip: '192.0.2.1' })
  const agent = noted(id)
  await engine.linked(agent.link)
  const { taskId } = await services.tasks.create({ script: { content: 'x' }, target: { hostIds: [id] } })
  await until('the execution is sent', () => agent.executions.length === 1)
  await engine.complete(agent.link, 'f1', { ...end(taskId, 255), status: 'LOST' })
  await until('the task ends', async () => (await services.tasks.get(taskId)).status !== 'RUNNING')
  t.deepEqual(await results.list(), [taskId])
  const real = { ...results }
  results.write = async (...written) => {
    await context.store.transact((tx) => tx.remove('tasks', taskId))
    await results.forget(taskId)
    await real.write(...written)
  }
  await engine.complete(agent.link, 'f2', end(taskId, 0))
  t.is(await context.store.get('tasks', taskId), undefined)
  t.deepEqual(await results.list(), [])
  t.is(await results.read(taskId), null)
})
