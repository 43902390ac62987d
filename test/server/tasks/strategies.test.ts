import test from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { counted, finished, running, startTask, statusesOf, task } from '../../helpers/clients/tasks.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'

async function fleet(server: TestServer, count: number) {
  const identities = []
  for (let n = 1; n <= count; n++) identities.push(await server.enroll(`web${n}`))
  const agents = await Promise.all(identities.map((identity) => ScriptedAgent.link(server, identity)))
  return { identities, hostIds: identities.map(({ hostId }) => hostId), agents }
}

test('PARALLEL starts every host at once, and fails when one fails', async (t) => {
  const server = await startTestServer(t)
  const { agents, hostIds } = await fleet(server, 3)
  const taskId = await startTask(server, hostIds)
  await Promise.all(agents.map((agent) => agent.execution(taskId)))
  for (const [index, agent] of agents.entries()) agent.complete(taskId, index, { lastSequence: -1 })
  const ended = await finished(server, taskId)
  t.is(ended.status, 'FAILED')
  t.deepEqual(statusesOf(ended), ['SUCCESS', 'FAILED', 'FAILED'])
  t.deepEqual(
    ended.results.map(({ exitCode }) => exitCode),
    [0, 1, 2],
  )
})

test('a host that is named twice runs once', async (t) => {
  const server = await startTestServer(t)
  const { agents, hostIds } = await fleet(server, 1)
  agents[0]?.serve()
  const taskId = await startTask(server, [...hostIds, ...hostIds])
  const ended = await finished(server, taskId)
  t.is(ended.hostCount, 1)
  t.is(agents[0]?.heard.filter(({ type }) => type === 'EXECUTE_SCRIPT').length, 1)
})

test('SEQUENTIAL runs in the order of hostIds and stops on failure: the rest is SKIPPED', async (t) => {
  const server = await startTestServer(t)
  const { agents, hostIds } = await fleet(server, 4)
  const order: number[] = []
  for (const [index, agent] of agents.entries())
    agent.serve(() => {
      order.push(index)
      return { exitCode: index === 1 ? 7 : 0 }
    })
  const reversed = hostIds.toReversed()
  const taskId = await startTask(server, reversed, { strategy: 'SEQUENTIAL' })
  const ended = await finished(server, taskId)
  t.deepEqual(statusesOf(ended), ['SUCCESS', 'SUCCESS', 'FAILED', 'SKIPPED'])
  t.deepEqual(order, [3, 2, 1])
  t.is(ended.status, 'FAILED')
  t.is(ended.results[3]?.exitCode, null)
})

test('ROLLING runs batch by batch, tolerates maxFailures, and stops after the batch that exceeds it', async (t) => {
  const server = await startTestServer(t)
  const { agents, hostIds } = await fleet(server, 6)
  for (const [index, agent] of agents.entries())
    agent.serve(() => ({ exitCode: index === 0 || index === 3 ? 1 : 0 }))
  const taskId = await startTask(server, hostIds, { strategy: 'ROLLING', batchSize: 2, maxFailures: 1 })
  t.deepEqual(statusesOf(await finished(server, taskId)), [
    'FAILED',
    'SUCCESS',
    'SUCCESS',
    'FAILED',
    'SKIPPED',
    'SKIPPED',
  ])
})

test('ROLLING waits for the whole batch before the next one starts', async (t) => {
  const server = await startTestServer(t)
  const { agents, hostIds } = await fleet(server, 3)
  const [first, second, third] = agents
  const taskId = await startTask(server, hostIds, { strategy: 'ROLLING', batchSize: [2, 1] })
  await first?.execution(taskId)
  await second?.execution(taskId)
  first?.complete(taskId, 0, { lastSequence: -1 })
  await first?.released(taskId)
  await third?.settled()
  t.false(third?.heard.some(({ type }) => type === 'EXECUTE_SCRIPT'))
  second?.complete(taskId, 0, { lastSequence: -1 })
  await third?.execution(taskId)
  third?.complete(taskId, 0, { lastSequence: -1 })
  t.is((await finished(server, taskId)).status, 'SUCCESS')
})

test('concurrency limits the number of simultaneous executions', async (t) => {
  const server = await startTestServer(t)
  const { agents, hostIds } = await fleet(server, 5)
  const taskId = await startTask(server, hostIds, { concurrency: 2 })
  await running(server, taskId, 2)
  const begun = new Set<number>()
  for (const [index, agent] of agents.entries()) agent.socket.on('message', () => void begun.add(index))
  for (let ended = 0; ended < 5; ended++) {
    const { counts } = await counted(server, taskId, (now) => now.RUNNING > 0 || now.SUCCESS === 5)
    t.true(counts.RUNNING <= 2)
    const agent = agents[ended]
    await agent?.execution(taskId)
    agent?.complete(taskId, 0, { lastSequence: -1 })
    await agent?.released(taskId)
  }
  t.is((await finished(server, taskId)).status, 'SUCCESS')
})

test('a cluster keeps the order of its hostIds, and the task records script and cluster', async (t) => {
  const server = await startTestServer(t)
  const { agents, hostIds } = await fleet(server, 2)
  for (const agent of agents) agent.serve()
  const cluster = await server.data('POST', '/api/clusters', { name: 'web', hostIds: hostIds.toReversed() })
  const script = await server.data('POST', '/api/scripts', { name: 's', type: 'BASH', content: 'true' })
  const { taskId } = await server.data('POST', `/api/clusters/${cluster.id}/execute`, {
    scriptId: script.id,
    strategy: 'SEQUENTIAL',
  })
  const ended = await finished(server, taskId)
  t.deepEqual(
    ended.results.map(({ hostId }) => hostId),
    hostIds.toReversed(),
  )
  await server.data('DELETE', `/api/clusters/${cluster.id}`)
  await server.data('DELETE', `/api/scripts/${script.id}`)
  const kept = await task(server, taskId)
  t.is(kept.clusterId, cluster.id)
  t.is(kept.scriptName, 's')
  t.is((await server.data('GET', `/api/tasks/${taskId}/script`)).content, 'true')
})
