import test from 'ava'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'
import { startTestServer } from '../../helpers/server.ts'
import { finished, startTask, task } from '../../helpers/tasks.ts'

test('F10 what many hosts tell at once of a task that has ended as LOST is all kept', async (t) => {
  const server = await startTestServer(t)
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  const identities = await Promise.all(names.map((name) => server.enrol(name)))
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

test('F09 a LOST that is told twice is no late result', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enrol('a')
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
