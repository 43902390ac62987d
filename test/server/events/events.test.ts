import test, { type ExecutionContext } from 'ava'
import { systemClock } from '../../../src/disk/clock.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { readEvents } from '../../helpers/clients/events.ts'
import { startTask } from '../../helpers/clients/tasks.ts'
import { metrics } from '../../helpers/metrics/metrics.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'

async function started(t: ExecutionContext, query = '') {
  const server = await startTestServer(t)
  const events = await readEvents(t, server, query)
  const ready = await events.next('ready')
  return { server, events, ready }
}

const host = (server: TestServer, hostname: string) =>
  server.data('POST', '/api/hosts', { hostname, ip: '192.0.2.1' })

test('a stream begins with a ready event whose id is the current position', async (t) => {
  const { ready } = await started(t)
  t.is(ready.id, ready.data.id)
  t.regex(ready.data.id, /^[0-9a-f]{12}-0$/)
})

test('creating, changing and removing a host each send an event with the host as the API returns it', async (t) => {
  const { server, events } = await started(t)
  const web1 = await host(server, 'web1')
  const created = await events.next('host')
  t.is(created.data.change, 'created')
  t.deepEqual(created.data.host, web1)
  const changed = await server.data('PATCH', `/api/hosts/${web1.id}`, { tags: { env: 'prod' } })
  const updated = await events.next('host')
  t.is(updated.data.change, 'updated')
  t.deepEqual(updated.data.host, changed)
  await server.data('DELETE', `/api/hosts/${web1.id}`)
  const removed = await events.next('host')
  t.is(removed.data.change, 'removed')
  t.deepEqual(removed.data.host, { id: web1.id })
})

test('many changes of a host at once are merged into a few events, the last with its current state', async (t) => {
  const { server, events } = await started(t, '?type=host')
  const { id } = await host(server, 'web1')
  await events.next('host')
  await Promise.all(
    Array.from({ length: 20 }, (_, n) => server.data('PATCH', `/api/hosts/${id}`, { tags: { n: `${n}` } })),
  )
  const { id: last } = await host(server, 'web2')
  await events.next('host', (data) => data.host.id === last)
  t.true(events.seen.length < 10, `${events.seen.length} events`)
  const told = events.seen.findLast(({ data }) => data.host?.id === id)
  t.deepEqual(told?.data.host, await server.data('GET', `/api/hosts/${id}`))
})

test('a status change caused by a heartbeat or by silence sends an event', async (t) => {
  // The clock is stopped while the host must not count as silent.
  let stopped: number | null = performance.now()
  const clock = { ...systemClock, monotonic: () => stopped ?? performance.now() }
  const server = await startTestServer(t, { heartbeatInterval: 0.3, clock })
  const events = await readEvents(t, server)
  const web1 = await server.enroll('web1')
  const created = await events.next('host')
  t.is(created.data.change, 'created')
  t.is(created.data.host.status, 'ONLINE')
  stopped = null
  const offline = await events.next('host', (data) => data.host.status === 'OFFLINE')
  t.regex(offline.data.host.statusReason, /^no heartbeat for/)
  stopped = performance.now()
  const beat = { agentId: web1.agentId, status: 'DEGRADED', timestamp: new Date().toISOString() }
  await server.api('POST', '/api/agent/heartbeat', beat, { authorization: `Bearer ${web1.token}` })
  const warning = await events.next('host', (data) => data.host.status === 'WARNING')
  t.is(warning.data.host.agent.status, 'DEGRADED')
})

test('A14 a lost link, the reason it stays down and its return each send an event', async (t) => {
  const server = await startTestServer(t)
  const web1 = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, web1)
  await agent.settled()
  const events = await readEvents(t, server, '?type=host')
  agent.socket.close()
  const reasonIs = (reason: RegExp) =>
    events.next('host', (data) => reason.test(data.host.statusReason ?? '') && !data.host.agent.reachable)
  const lost = await reasonIs(/^no link for 0 s$/)
  t.is(lost.data.host.status, 'ONLINE')
  const beat = { agentId: web1.agentId, status: 'HEALTHY', linkFault: 'the server answered 502' }
  await server.api('POST', '/api/agent/heartbeat', beat, { authorization: `Bearer ${web1.token}` })
  await reasonIs(/^no link for \d+ s \(the server answered 502\)$/)
  await ScriptedAgent.link(server, web1)
  const back = await events.next('host', (data) => data.host.agent.reachable)
  t.is(back.data.host.statusReason, null)
  t.is(back.data.host.agent.linkLostAt, null)
})

test('a warning with a new reason sends an event; one whose numbers changed does not', async (t) => {
  const server = await startTestServer(t, { warnAfter: 0 })
  const events = await readEvents(t, server, '?type=host')
  const web1 = await server.enroll('web1')
  const report = async (cpu: number, disk: number) => {
    const timestamp = new Date().toISOString()
    const body = { agentId: web1.agentId, ...metrics(timestamp, { cpu, disks: { '/': disk } }) }
    const { status } = await server.api('POST', '/api/agent/metrics', body, {
      authorization: `Bearer ${web1.token}`,
    })
    t.is(status, 200)
  }
  const reasonIs = (reason: string) => events.next('host', (data) => data.host.statusReason === reason)
  await report(95, 10)
  await reasonIs('cpu 95 %')
  const before = events.seen.length
  await report(97, 10)
  const other = await host(server, 'web2')
  await events.next('host', (data) => data.host.id === other.id)
  t.is(events.seen.length, before + 1)
  await report(10, 96)
  await reasonIs('disk / 96 %')
})

test('a cluster sends events when it is created, changed or removed, and when a member joins or is removed', async (t) => {
  const { server, events } = await started(t)
  const web1 = await host(server, 'web1')
  const cluster = await server.data('POST', '/api/clusters', { name: 'web', hostIds: [web1.id] })
  const created = await events.next('cluster')
  t.is(created.data.change, 'created')
  t.deepEqual(created.data.cluster, cluster)
  await server.data('DELETE', `/api/hosts/${web1.id}`)
  t.deepEqual((await events.next('cluster')).data.cluster.hostIds, [])
  const { token } = await server.data('POST', '/api/enrollment-tokens', { clusterId: cluster.id })
  const registration = { agentId: 'a-web2', hostname: 'web2', ipAddresses: ['192.0.2.2'] }
  await server.api('POST', '/api/agent/register', registration, { authorization: `Bearer ${token}` })
  t.is((await events.next('cluster')).data.cluster.hostCount, 1)
  await server.data('PATCH', `/api/clusters/${cluster.id}`, { description: 'front' })
  t.is((await events.next('cluster')).data.cluster.description, 'front')
  await server.data('DELETE', `/api/clusters/${cluster.id}`)
  const { data } = await events.next('cluster')
  t.deepEqual([data.change, data.cluster], ['removed', { id: cluster.id }])
})

test('a host that enters or leaves a dynamic cluster sends an event for that cluster', async (t) => {
  const server = await startTestServer(t)
  const web1 = await host(server, 'web1')
  const cluster = await server.data('POST', '/api/clusters', { name: 'prod', selector: '@env:prod' })
  t.is(cluster.hostCount, 0)
  const events = await readEvents(t, server)
  await events.next('ready')
  await server.data('PATCH', `/api/hosts/${web1.id}`, { tags: { env: 'prod' } })
  t.deepEqual((await events.next('cluster')).data.cluster.hostIds, [web1.id])
  t.deepEqual(events.seen.find(({ event }) => event === 'host')?.data.host.clusterIds, [cluster.id])
  await server.data('PATCH', `/api/hosts/${web1.id}`, { tags: { env: null } })
  t.deepEqual((await events.next('cluster')).data.cluster.hostIds, [])
})

test('a task sends events from start to end, with its counts and without its output', async (t) => {
  const { server, events } = await started(t, '?type=task')
  const web1 = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, web1)
  const taskId = await startTask(server, [web1.hostId])
  const created = await events.next('task')
  t.is(created.data.change, 'created')
  t.is(created.data.task.taskId, taskId)
  await agent.execution(taskId)
  // Changes within an instant are sent as one event: the first one may already say RUNNING.
  if (created.data.task.counts.RUNNING === 0)
    await events.next('task', ({ task }) => task.counts.RUNNING === 1 && task.status === 'RUNNING')
  agent.output(taskId, 0, 'much to say')
  agent.complete(taskId, 3, { lastSequence: 0 })
  const ended = await events.next('task', ({ task }) => task.status !== 'RUNNING')
  t.is(ended.data.task.status, 'FAILED')
  t.is(ended.data.task.counts.FAILED, 1)
  t.false('results' in ended.data.task)
  t.false(JSON.stringify(events.seen).includes('much to say'))
  t.deepEqual([...new Set(events.seen.map(({ event }) => event))], ['ready', 'task'])
})

test('a client that reconnects with its last id, as header or query, gets each event exactly once', async (t) => {
  const { server, events } = await started(t)
  for (const name of ['a', 'b', 'c']) {
    await host(server, name)
    await events.next('host', (data) => data.host.hostname === name)
  }
  const told = events.seen.filter(({ event }) => event === 'host')
  const first = told[0]?.id ?? ''
  events.close()
  await host(server, 'd')
  for (const [query, headers] of [
    [`?after=${first}`, {}],
    ['', { 'last-event-id': first }],
    // A browser reconnects with its original address.
    [`?after=${told[2]?.id}`, { 'last-event-id': first }],
  ] as [string, Record<string, string>][]) {
    const again = await readEvents(t, server, query, headers)
    await again.next('host', (data) => data.host.hostname === 'd')
    t.is(again.seen[0]?.event, 'ready')
    t.is(again.seen[0]?.data.id, first)
    t.deepEqual(
      again.seen.slice(1).map(({ event, data }) => [event, data.host.hostname]),
      ['b', 'c', 'd'].map((name) => ['host', name]),
    )
  }
})

test('an id from before a restart is answered with reset, and later events follow', async (t) => {
  const { server, events, ready } = await started(t)
  const restarted = server.restart()
  await events.ended
  await restarted
  const again = await readEvents(t, server, '', { 'last-event-id': ready.data.id })
  const reset = await again.next('reset')
  t.is(reset.data.reason, 'RESTARTED')
  t.is(reset.id, reset.data.id)
  await host(server, 'web1')
  t.is((await again.next('host')).data.host.hostname, 'web1')
})

test('a Last-Event-ID of unknown format is answered with reset', async (t) => {
  const server = await startTestServer(t)
  const events = await readEvents(t, server, '', { 'last-event-id': '17' })
  t.is((await events.next('reset')).data.reason, 'UNKNOWN')
})

test('an invalid type or after is answered with a 400 that names the parameter', async (t) => {
  const server = await startTestServer(t)
  for (const [query, field] of [
    ['?type=hosts', 'type[0]'],
    ['?type=host&type=x', 'type[1]'],
    ['?after=17', 'after'],
    ['?since=1', 'since'],
  ] as const) {
    const { status, body } = await server.api('GET', `/api/events${query}`)
    t.is(status, 400, query)
    t.is(body.errors?.[0]?.field, field)
  }
})

test('HEAD is answered with headers only', async (t) => {
  const server = await startTestServer(t)
  const response = await fetch(`${server.url}/api/events`, {
    method: 'HEAD',
    headers: { authorization: `Bearer ${server.token}` },
  })
  t.is(response.status, 200)
  t.is(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
})
