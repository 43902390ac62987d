import test from 'ava'
import type { Host } from '../../../src/core/protocol/http/hosts.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, running, startTask, task } from '../../helpers/clients/tasks.ts'
import { metrics } from '../../helpers/metrics/metrics.ts'
import { scrape } from '../../helpers/metrics/scrape.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const beat = (server: Pick<TestServer, 'api'>, { agentId, token }: { agentId: string; token: string }) =>
  server.api(
    'POST',
    '/api/agent/heartbeat',
    { agentId, status: 'HEALTHY', uptime: 1 },
    { authorization: `Bearer ${token}` },
  )

test('a host never heard from is UNREACHABLE at once, and the result says why', async (t) => {
  const server = await startTestServer(t)
  const host = await server.data('POST', '/api/hosts', { hostname: 'silent', ip: '10.0.0.1' })
  const ended = await finished(server, await startTask(server, [host.id]))
  t.is(ended.results[0]?.status, 'UNREACHABLE')
  t.is(ended.results[0]?.error, 'silent is OFFLINE: never heard')
  t.is(ended.results[0]?.startedAt, null)
})

test('a host that heartbeats without a link is UNREACHABLE after queueSeconds, not before', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const taskId = await startTask(server, [identity.hostId], { queueSeconds: 1 })
  const ended = await finished(server, taskId)
  t.is(ended.results[0]?.status, 'UNREACHABLE')
  t.true((ended.duration ?? 0) >= 1000)
})

test('the error of an unlinked host names the missing link, not its WARNING', async (t) => {
  const server = await startTestServer(t)
  const { hostId, agentId, token } = await server.enroll('web1')
  const degraded = { agentId, status: 'DEGRADED', linkFault: 'a proxy lets no WebSocket through' }
  await server.api('POST', '/api/agent/heartbeat', degraded, { authorization: `Bearer ${token}` })
  const ended = await finished(server, await startTask(server, [hostId], { queueSeconds: 0 }))
  t.like(ended.results[0], { status: 'UNREACHABLE' })
  t.regex(
    ended.results[0]?.error ?? '',
    /^web1 is not linked \(a proxy lets no WebSocket through\), and was last heard \d+ s ago$/,
  )
})

test('A14 a task waits 15 s for a stopped agent and 120 s for others, and calls neither ONLINE', async (t) => {
  let passed = 0
  const clock = { now: () => Date.now() + passed, monotonic: () => performance.now() + passed }
  const server = await startTestServer(t, { clock, heartbeatInterval: 600 })
  const stopped = await server.enroll('stopped1')
  const cut = await server.enroll('cut1')
  const [goodbye, gone] = [await ScriptedAgent.link(server, stopped), await ScriptedAgent.link(server, cut)]
  await Promise.all([goodbye.settled(), gone.settled()])
  goodbye.socket.close(1001, 'the agent was stopped')
  await goodbye.closed
  await gone.cut()
  const shown = async (hostId: number) => (await server.data('GET', `/api/hosts/${hostId}`)) as Host
  for (const { hostId } of [stopped, cut])
    await until('its link is gone', async () => (await shown(hostId)).agent?.connected === false)
  t.like(await shown(stopped.hostId), { status: 'ONLINE', agent: { reachable: false } as never })
  t.regex((await shown(stopped.hostId)).statusReason ?? '', /^its agent was stopped \d s ago$/)
  t.regex((await shown(cut.hostId)).statusReason ?? '', /^no link for \d s$/)
  const taskId = await startTask(server, [stopped.hostId, cut.hostId])
  const waiting = async () => (await task(server, taskId)).results.map(({ status }) => status)
  passed += 14_000
  await server.data('GET', '/api/server')
  t.deepEqual(await waiting(), ['PENDING', 'PENDING'])
  passed += 1500
  await until('the wait is over', async () => (await waiting())[0] === 'UNREACHABLE')
  passed += 100_000
  t.is((await waiting())[1], 'PENDING')
  passed += 5000
  const [one, other] = (await finished(server, taskId)).results
  t.regex(one?.error ?? '', /^stopped1 is not linked: its agent was stopped \d+ s ago$/)
  t.regex(other?.error ?? '', /^cut1 is not linked, and was last heard 1\d\d s ago$/)
})

test('A14 @reachable selects exactly the hosts that a script can reach, regardless of warnings', async (t) => {
  const server = await startTestServer(t, { warnAfter: 0 })
  const busy = await server.enroll('busy1')
  const agent = await ScriptedAgent.link(server, busy)
  await agent.settled()
  const report = { agentId: busy.agentId, ...metrics(new Date().toISOString(), { cpu: 97 }) }
  await server.api('POST', '/api/agent/metrics', report, { authorization: `Bearer ${busy.token}` })
  const gone = await server.enroll('gone1')
  const link = await ScriptedAgent.link(server, gone)
  await link.settled()
  await server.enroll('seed1')
  await server.data('POST', '/api/hosts', { hostname: 'never1', ip: '10.0.0.1' })
  const names = async (selector: string) => {
    const page = await server.data('GET', `/api/hosts?selector=${encodeURIComponent(selector)}`)
    return page.content.map(({ hostname }: Host) => hostname).join()
  }
  t.is(await names('@reachable'), 'busy1,gone1,seed1')
  t.is(await names('@status:ONLINE'), 'gone1,seed1')
  const { id } = await server.data('POST', '/api/clusters', { name: 'up', selector: '@reachable' })
  await link.cut()
  await until('its link is gone', async () => (await names('@reachable')) === 'busy1,seed1')
  t.is((await server.data('GET', `/api/clusters/${id}`)).hostCount, 2)
  t.is(await names('@status:ONLINE'), 'seed1')
  t.is(await names('@status:no_link'), 'gone1')
  t.is((await server.data('GET', '/api/hosts?status=ONLINE')).totalElements, 2)
  const { of } = await scrape(server)
  t.deepEqual(
    ['ONLINE', 'WARNING', 'NO_LINK', 'OFFLINE'].map((status) => of(`rsm_hosts{status="${status}"}`)),
    [1, 1, 1, 1],
  )
  const refused = await server.api('POST', '/api/clusters', { name: 'Reachable', hostIds: [] })
  t.is(refused.status, 400)
  t.is(refused.body.errors?.[0]?.field, 'name')
})

test('A14 a schedule on @status:ONLINE includes hosts that have not linked yet after a server start', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  await agent.settled()
  const up = await server.data('POST', '/api/clusters', { name: 'up', selector: '@status:ONLINE' })
  const ids: number[] = []
  for (const target of [{ selector: '@status:ONLINE' }, { clusterId: up.id }]) {
    const order = { script: { content: 'true' }, everySeconds: 86_400, target }
    ids.push((await server.data('POST', '/api/schedules', { name: `of ${ids.length}`, ...order })).id)
  }
  await agent.cut()
  await server.restart()
  t.is((await server.data('GET', '/api/hosts?selector=@status:ONLINE')).totalElements, 0)
  for (const id of ids) {
    const { taskId } = await server.data('POST', `/api/schedules/${id}/run`)
    t.is((await task(server, taskId)).results[0]?.hostId, identity.hostId)
  }
})

test('P07 a waiting task is counted in heartbeats, listed in the configuration, and sent when the agent connects', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const taskId = await startTask(server, [identity.hostId])
  const ack = await beat(server, identity)
  t.is(ack.body.data.pendingTasks, 1)
  t.regex(ack.body.data.serverTime, /Z$/)
  const config = await server.api('GET', `/api/agent/config?agentId=${identity.agentId}`, undefined, {
    authorization: `Bearer ${identity.token}`,
  })
  const { configVersion } = ack.body.data
  t.deepEqual(config.body.data, {
    heartbeatInterval: 30,
    metricsInterval: 60,
    logLevel: 'INFO',
    configVersion,
    pendingTasks: [{ taskId, type: 'EXECUTE_SCRIPT' }],
  })
  const agent = await ScriptedAgent.link(server, identity)
  await agent.execution(taskId)
  t.is((await beat(server, identity)).body.data.pendingTasks, 0)
  agent.complete(taskId, 0, { lastSequence: -1 })
  t.is((await finished(server, taskId)).status, 'SUCCESS')
})

test('a waiting host stays PENDING over a server restart and is served afterwards', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const taskId = await startTask(server, [identity.hostId])
  await server.restart()
  t.is((await task(server, taskId)).results[0]?.status, 'PENDING')
  const agent = await ScriptedAgent.link(server, identity)
  agent.serve()
  t.is((await finished(server, taskId)).status, 'SUCCESS')
})

test('a link that closes before its HELLO gets nothing, and the task keeps waiting', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const taskId = await startTask(server, [identity.hostId])
  const silent = await ScriptedAgent.link(server, identity, { hello: false })
  await silent.cut()
  t.deepEqual(silent.heard, [])
  const agent = await ScriptedAgent.link(server, identity)
  agent.serve()
  t.is((await finished(server, taskId)).status, 'SUCCESS')
})

test('P18 an agent gets at most as many executions at once as its HELLO allows; others wait PENDING, in order', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { maxExecutions: 2 })
  const tasks: string[] = []
  for (let n = 0; n < 4; n++) tasks.push(await startTask(server, [identity.hostId]))
  const [first = '', second = '', third = '', fourth = ''] = tasks
  await agent.execution(first)
  await agent.execution(second)
  await agent.settled()
  t.is(agent.heard.filter(({ type }) => type === 'EXECUTE_SCRIPT').length, 2)
  t.is((await task(server, third)).results[0]?.status, 'PENDING')
  agent.complete(second, 0, { lastSequence: -1 })
  await agent.execution(third)
  t.is((await task(server, fourth)).results[0]?.status, 'PENDING')
  agent.complete(first, 0, { lastSequence: -1 })
  await agent.execution(fourth)
  for (const taskId of [third, fourth]) agent.complete(taskId, 0, { lastSequence: -1 })
  for (const taskId of tasks) t.is((await finished(server, taskId)).status, 'SUCCESS')
})

test('a revoked agent is sent no more work, and its running work does not hang on the dead link', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  await agent.settled()
  await server.data('DELETE', `/api/hosts/${identity.hostId}/agent`)
  const taskId = await startTask(server, [identity.hostId], { queueSeconds: 0 })
  t.is((await finished(server, taskId)).results[0]?.status, 'UNREACHABLE')
  t.is((await agent.closed).code, 4401)
  t.false(agent.heard.some(({ type }) => type === 'EXECUTE_SCRIPT'))
})

test('running work of a host is LOST as soon as its agent is revoked; other hosts continue', async (t) => {
  const server = await startTestServer(t)
  const [revoked, other] = [await server.enroll('web1'), await server.enroll('web2')]
  const agents = [await ScriptedAgent.link(server, revoked), await ScriptedAgent.link(server, other)] as const
  const taskId = await startTask(server, [revoked.hostId, other.hostId])
  for (const agent of agents) {
    await agent.execution(taskId)
    agent.output(taskId, 0, 'begun')
    await agent.acknowledged(taskId, 0)
  }
  await server.data('DELETE', `/api/hosts/${revoked.hostId}/agent`)
  const [lost, goesOn] = (await task(server, taskId)).results
  t.like(lost, { status: 'LOST', exitCode: null, outputComplete: false, stdoutBytes: 5 })
  t.is(
    lost?.error,
    'its agent was revoked while it ran; its end is unknown; 5 bytes of its output are stored',
  )
  t.like(goesOn, { status: 'RUNNING' })
  agents[1].complete(taskId, 0, { lastSequence: 0 })
  t.is((await finished(server, taskId)).counts.LOST, 1)
})

test('deleting a host with running work is a 409; if forced, its results become LOST', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  const taskId = await startTask(server, [identity.hostId])
  await running(server, taskId)
  t.is((await server.api('DELETE', `/api/hosts/${identity.hostId}`)).status, 409)
  await server.data('DELETE', `/api/hosts/${identity.hostId}?force=true`)
  const ended = await finished(server, taskId)
  t.is(ended.results[0]?.status, 'LOST')
  t.is(ended.results[0]?.hostname, 'web1')
  t.is((await agent.closed).code, 4401)
  await t.throwsAsync(ScriptedAgent.link(server, identity), { message: /401/ })
})

test('100 disconnected hosts end a task together: one fsync makes many ends durable', async (t) => {
  const server = await startTestServer(t)
  const ids = await Promise.all(
    Array.from({ length: 100 }, async (_, n): Promise<number> => {
      const host = await server.data('POST', '/api/hosts', { hostname: `h${n}`, ip: '10.0.0.1' })
      return host.id
    }),
  )
  const syncs = async () => (await scrape(server)).of('rsm_journal_fsync_seconds_count')
  const before = await syncs()
  const ended = await finished(server, await startTask(server, ids))
  t.is(ended.counts.UNREACHABLE, 100)
  const made = (await syncs()) - before
  t.true(made > 0 && made < 50, `${made} fsyncs`)
})
