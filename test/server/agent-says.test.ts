import test from 'ava'
import type { Host } from '../../src/core/protocol/http/hosts.ts'
import { ScriptedAgent } from '../helpers/agents/scripted-agent.ts'
import { startTestServer } from '../helpers/servers/server.ts'
import { until } from '../helpers/until.ts'

test('a host shows the clock, health and link fault of its latest heartbeat, until a heartbeat or link clears them', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const { agentId, hostId, token } = identity
  const beat = (body: object) =>
    server.api('POST', '/api/agent/heartbeat', { agentId, ...body }, { authorization: `Bearer ${token}` })
  const shown = async () => (await server.data('GET', `/api/hosts/${hostId}`)) as Host
  const unsaid = { onDemand: null, linkFault: null, statusReason: null, clockOffsetSeconds: null }
  t.like((await shown()).agent, unsaid)
  const says = {
    status: 'DEGRADED',
    timestamp: new Date(Date.now() + 3_600_000).toISOString(),
    reason: '2 % free on the disk of /var/lib/rsm/agent',
    onDemand: false,
    linkFault: 'the server answered 502',
    unknown: 'of a newer agent',
  }
  t.is((await beat(says)).status, 200)
  const degraded = await shown()
  t.is(degraded.statusReason, `the agent reports DEGRADED: ${says.reason}`)
  t.like(degraded.agent, { onDemand: false, linkFault: says.linkFault, statusReason: says.reason })
  const offset = degraded.agent?.clockOffsetSeconds ?? 0
  t.true(offset > 3500 && offset <= 3600, String(offset))
  t.is((await beat({ ...says, reason: 'one line\r\nand another' })).status, 200)
  t.is((await shown()).agent?.statusReason, 'one line and another')
  t.is((await beat({ ...says, linkFault: 'x'.repeat(257) })).status, 400)

  const agent = await ScriptedAgent.link(server, identity)
  await agent.settled()
  t.is((await shown()).agent?.linkFault, null)
  await agent.cut()
  await until('the link is gone', async () => (await shown()).agent?.connected === false)
  t.like((await shown()).agent, { connected: false, onDemand: false, linkFault: null })
  t.is((await beat({ status: 'HEALTHY' })).status, 200)
  const healthy = await shown()
  t.is(healthy.status, 'ONLINE')
  t.like(healthy.agent, unsaid)
})

test('information about the server is for users, not for agents', async (t) => {
  const server = await startTestServer(t, { heartbeatInterval: 7, metricsInterval: 8 })
  const info = await server.data('GET', '/api/server')
  t.like(info, { heartbeatInterval: 7, metricsInterval: 8 })
  t.regex(info.version, /^\d+\.\d+\.\d+/)
  t.true(info.startedAt < info.serverTime && Date.now() - Date.parse(info.startedAt) < 60_000)
  t.true(Math.abs(Date.parse(info.serverTime) - Date.now()) < 60_000)
  const { token } = await server.enroll('web1')
  const { status } = await server.api('GET', '/api/server', undefined, { authorization: `Bearer ${token}` })
  t.is(status, 403)
})
