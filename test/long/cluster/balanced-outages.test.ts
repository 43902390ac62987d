import { setTimeout as delay } from 'node:timers/promises'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask, statusesOf } from '../../helpers/clients/tasks.ts'
import { type Cluster, startCluster, clusterTest as test } from '../../helpers/cluster/cluster.ts'
import { until } from '../../helpers/until.ts'

async function linked({ front }: Cluster) {
  const identities = await Promise.all(['web1', 'web2', 'web3'].map((name) => front.enroll(name)))
  const agents: ScriptedAgent[] = []
  for (const identity of identities) agents.push(await ScriptedAgent.link(front, identity))
  // Wait until each link is claimed in the store.
  for (const agent of agents) await agent.settled()
  return { identities, agents }
}

const isOpen = ({ socket }: ScriptedAgent) => socket.readyState === socket.OPEN

test('F23 a PostgreSQL outage of 20 s behind the documented balancer keeps links and lists; other requests get 503 with a reason', async (t) => {
  t.timeout(120_000)
  const cluster = await startCluster(t)
  const { front, postgres, servers } = cluster
  const { identities, agents } = await linked(cluster)
  const [first] = identities
  if (!first) throw new Error('no host is enrolled')
  t.is((await front.api('GET', '/api/hosts')).status, 200)
  // Each server has to cache the token, to answer from memory.
  for (const { url } of servers)
    await fetch(`${url}/api/hosts`, { headers: { authorization: `Bearer ${front.token}` } })
  postgres.stop('immediate')
  const stoppedAt = performance.now()
  await until('no server is ready', async () => (await front.api('GET', '/api/ready')).status === 503)
  // The balancer checks every 200 ms.
  await delay(2_000)
  const ready = await front.api('GET', '/api/ready')
  t.is(ready.headers.get('retry-after'), '5')
  t.true(ready.body.data.reasons.includes('PostgreSQL cannot be reached'))
  t.is((await front.api('GET', '/api/hosts')).status, 200)
  const refused = await front.api('POST', '/api/tasks', { script: 'true', hostIds: [first.hostId] })
  t.is(refused.status, 503)
  t.truthy(refused.headers.get('retry-after'), refused.body.message)
  t.log(refused.body.message)
  const beat = await front.api(
    'POST',
    '/api/agent/heartbeat',
    { agentId: first.agentId, status: 'HEALTHY' },
    { authorization: `Bearer ${first.token}` },
  )
  t.is(beat.status, 200)
  await delay(stoppedAt + 20_000 - performance.now())
  t.true(agents.every(isOpen))
  t.is((await front.api('GET', '/api/hosts')).status, 200)
  postgres.start()
  // Until its lease is renewed, a server closes a link when it has to send over it.
  for (const { url } of servers)
    await until('each is ready', async () => (await fetch(`${url}/api/ready`)).status === 200)
  const taskId = await startTask(
    front,
    identities.map(({ hostId }) => hostId),
  )
  for (const agent of agents) {
    await agent.execution(taskId)
    agent.complete(taskId)
  }
  t.deepEqual(statusesOf(await finished(front, taskId)), ['SUCCESS', 'SUCCESS', 'SUCCESS'])
  t.true(agents.every(isOpen))
})

test('F22 the documented balancer ends the connections of a machine that has stopped responding', async (t) => {
  t.timeout(60_000)
  const cluster = await startCluster(t)
  const { agents } = await linked(cluster)
  const [lost] = cluster.servers
  const { content } = await cluster.front.data('GET', '/api/servers')
  const links = content.find(({ name }: { name: string }) => name === 'server1').links
  t.true(links > 0)
  lost?.signal('SIGSTOP')
  t.teardown(() => lost?.signal('SIGCONT'))
  const stoppedAt = performance.now()
  await until(
    'its agents have lost their links',
    () => agents.filter((agent) => !isOpen(agent)).length === links,
  )
  t.true(performance.now() - stoppedAt < 15_000, 'sooner than the timeout of 30 s')
  await delay(2_000)
  t.is(agents.filter(isOpen).length, agents.length - links, 'the other links stay')
})
