import { setTimeout as delay } from 'node:timers/promises'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask, statusesOf } from '../../helpers/clients/tasks.ts'
import { startCluster, clusterTest as test } from '../../helpers/cluster/cluster.ts'
import { until } from '../../helpers/until.ts'

test('F23 PostgreSQL is down for a minute: links are kept for 30 s, then closed, and tokens are refused', async (t) => {
  t.timeout(180_000)
  const { servers, postgres } = await startCluster(t, { size: 1 })
  const [a] = servers
  if (!a) throw new Error('no server')
  const identity = await a.enroll('web1')
  const agent = await ScriptedAgent.link(a, identity)
  const taskId = await startTask(a, [identity.hostId])
  await agent.execution(taskId)
  agent.output(taskId, 0, 'before')
  await agent.acknowledged(taskId, 0)
  const asAgent = { authorization: `Bearer ${identity.token}` }
  const beat = async () => {
    const body = { agentId: identity.agentId, status: 'HEALTHY' }
    return (await a.api('POST', '/api/agent/heartbeat', body, asAgent)).status
  }
  const list = async () => (await a.api('GET', '/api/hosts')).status
  t.deepEqual([await beat(), await list()], [200, 200])
  postgres.stop('immediate')
  const stoppedAt = performance.now()
  await delay(20_000)
  t.deepEqual([await beat(), await list()], [200, 200])
  t.is(agent.socket.readyState, agent.socket.OPEN)
  const { code } = await agent.closed
  const kept = performance.now() - stoppedAt
  t.is(code, 1013)
  t.log(`the link was kept for ${Math.round(kept / 1000)} s`)
  t.true(kept > 26_000 && kept < 65_000, `${kept}`)
  t.deepEqual([await beat(), await list()], [503, 503])
  await t.throwsAsync(ScriptedAgent.link(a, identity), { message: /503/ })
  postgres.start()
  await until('the server is ready', async () => (await a.api('GET', '/api/ready')).status === 200)
  t.deepEqual([await beat(), await list()], [200, 200])
  const again = await ScriptedAgent.link(a, identity, {
    tasks: [{ taskId, state: 'RUNNING', lastSequence: 0 }],
  })
  again.output(taskId, 1, 'after')
  again.complete(taskId, 0, { lastSequence: 1 })
  t.deepEqual(statusesOf(await finished(a, taskId)), ['SUCCESS'])
})
