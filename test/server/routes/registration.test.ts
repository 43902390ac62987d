import test from 'ava'
import { systemClock } from '../../../src/disk/clock.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const register = (server: TestServer, token: string, agentId: string, hostname: string, more: object = {}) =>
  server.api(
    'POST',
    '/api/agent/register',
    { agentId, hostname, ...more },
    { authorization: `Bearer ${token}` },
  )
const enrollment = async (server: TestServer, body: object = {}): Promise<string> =>
  (await server.data('POST', '/api/enrollment-tokens', body)).token
const beat = (server: TestServer, agentId: string, token: string, more: object = {}) =>
  server.api(
    'POST',
    '/api/agent/heartbeat',
    { agentId, status: 'HEALTHY', ...more },
    { authorization: `Bearer ${token}` },
  )

test('P01 an enrollment token creates a host from the reported facts, with its tags and cluster', async (t) => {
  const server = await startTestServer(t)
  const cluster = await server.data('POST', '/api/clusters', { name: 'web' })
  const token = await enrollment(server, { tags: { env: 'prod' }, clusterId: cluster.id })
  const { status, body } = await register(server, token, 'a1', 'web1', {
    ipAddresses: ['not an ip', '10.1.2.3', '::1'],
    os: 'linux',
    kernel: '6.1',
    arch: 'arm64',
    cpuCores: 4,
    memoryMB: 8000,
    diskGB: 20,
    agentVersion: '1.2.3',
    unknownField: 'ignored',
  })
  t.is(status, 200)
  t.deepEqual(Object.keys(body.data).sort(), [
    'heartbeatInterval',
    'hostId',
    'keyId',
    'metricsInterval',
    'serverKey',
    'serverTime',
    'token',
  ])
  t.regex(body.data.token, /^rsm_agt_[\w-]{43}$/)
  const host = await server.data('GET', `/api/hosts/${body.data.hostId}`)
  t.like(host, {
    hostname: 'web1',
    ip: '10.1.2.3',
    sshPort: 22,
    authType: 'NONE',
    status: 'ONLINE',
    statusReason: null,
  })
  t.deepEqual(host.tags, { env: 'prod' })
  t.deepEqual(host.clusterIds, [cluster.id])
  t.like(host.systemInfo, { os: 'linux', arch: 'arm64', cpuCores: 4 })
  t.like(host.agent, { agentId: 'a1', agentVersion: '1.2.3', connected: false, status: 'HEALTHY' })
  t.false(JSON.stringify(host).includes('rsm_agt_'))
})

test('a host whose facts change with every heartbeat is updated ten times at once, and stays online', async (t) => {
  const server = await startTestServer(t)
  const { body } = await register(server, await enrollment(server), 'a1', 'web1', { cpuCores: 1000 })
  const { hostId, token } = body.data
  const coresAfter: number[] = []
  for (let cpuCores = 1; cpuCores <= 12; cpuCores += 1) {
    t.is((await beat(server, 'a1', token, { facts: { cpuCores, ofLater: 'ignored' } })).status, 200)
    coresAfter.push((await server.data('GET', `/api/hosts/${hostId}`)).systemInfo.cpuCores)
  }
  t.deepEqual(coresAfter, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10])
  const tooLong = { ipAddresses: Array(257).fill('10.0.0.1') }
  t.is((await beat(server, 'a1', token, { facts: tooLong })).status, 400)
  t.is((await beat(server, 'a2', token, { facts: { cpuCores: 1 } })).status, 403)
})

test('P01 a used-up, deleted or unknown token is a 401', async (t) => {
  const server = await startTestServer(t)
  const token = await enrollment(server, { maxUses: 2 })
  for (const name of ['a', 'b']) {
    const { body } = await register(server, token, name, name)
    t.is((await beat(server, name, body.data.token)).status, 200)
  }
  t.is((await register(server, token, 'c', 'c')).status, 401)
  const deleted = await server.data('POST', '/api/enrollment-tokens', {})
  await server.data('DELETE', `/api/enrollment-tokens/${deleted.id}`)
  t.is((await register(server, deleted.token, 'c', 'c')).status, 401)
  t.is((await register(server, `${deleted.token}x`, 'c', 'c')).status, 401)
  t.is((await server.data('GET', '/api/hosts')).totalElements, 2)
})

test('P01 only one of ten agents racing for a single-use token wins', async (t) => {
  const server = await startTestServer(t)
  const token = await enrollment(server)
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, n) => register(server, token, `a${n}`, `h${n}`)),
  )
  t.is(answers.filter(({ status }) => status === 200).length, 1)
  t.is(answers.filter(({ status }) => status === 401).length, 9)
})

test('P02 S03 an enrollment token alone cannot take over an agentId or a hostname', async (t) => {
  const server = await startTestServer(t)
  const victim = await server.enroll('web1')
  await beat(server, victim.agentId, victim.token)
  const token = await enrollment(server, { maxUses: 10 })
  const byAgent = await register(server, token, victim.agentId, 'elsewhere')
  t.is(byAgent.status, 409)
  t.regex(byAgent.body.message, /--replace web1/)
  const byName = await register(server, token, 'evil', 'WEB1')
  t.is(byName.status, 409)
  t.regex(byName.body.message, /--hostname/)
  t.is((await beat(server, victim.agentId, victim.token)).status, 200)
  const [{ uses }] = (await server.data('GET', '/api/enrollment-tokens')).content.slice(-1)
  t.is(uses, 0)
})

test('S03 a host without an agent gives up its hostname to an enrolled machine, and nothing else', async (t) => {
  const server = await startTestServer(t)
  const squatted = await server.data('POST', '/api/hosts', {
    hostname: 'Web9',
    ip: '10.0.0.1',
    tags: { role: 'db' },
    authType: 'PASSWORD',
    username: 'root',
    password: 'hunter2',
  })
  const cluster = await server.data('POST', '/api/clusters', { name: 'db', hostIds: [squatted.id] })
  const token = await enrollment(server, { tags: { env: 'dev' } })
  const { status, body } = await register(server, token, 'a9', 'web9')
  t.is(status, 200)
  const host = await server.data('GET', `/api/hosts/${body.data.hostId}`)
  t.like(host, { hostname: 'web9', tags: { env: 'dev' }, clusterIds: [], authType: 'NONE', ip: '127.0.0.1' })
  const former = await server.data('GET', `/api/hosts/${squatted.id}`)
  t.regex(former.hostname, /^Web9-unclaimed-[0-9a-f]{8}$/)
  t.like(former, { tags: { role: 'db' }, clusterIds: [cluster.id], authType: 'PASSWORD', agent: null })
  const renames = async () => (await server.data('GET', '/api/audit?action=host.rename')).content
  await until('it is audited', async () => (await renames()).length > 0)
  const [entry] = await renames()
  t.like(entry, { object: { id: squatted.id, name: 'Web9' } })
  t.like(entry.detail, { hostname: former.hostname })
})

test('P01 a machine with the hostname and address of a host without an agent becomes that host', async (t) => {
  const server = await startTestServer(t)
  const prepared = { hostname: 'web1', ip: '::ffff:127.0.0.1', tags: { role: 'web' } }
  const { id } = await server.data('POST', '/api/hosts', prepared)
  const token = await enrollment(server, { tags: { env: 'dev' }, maxUses: 2 })
  const { body } = await register(server, token, 'a1', 'WEB1')
  t.is(body.data.hostId, id)
  t.like(await server.data('GET', `/api/hosts/${id}`), {
    hostname: 'web1',
    tags: { role: 'web', env: 'dev' },
  })
  t.is((await register(server, token, 'a2', 'web1')).status, 409, 'it has an agent now')
})

test('P02 another agent cannot take over a host with its own token', async (t) => {
  const server = await startTestServer(t)
  const victim = await server.enroll('web1')
  const evil = await server.enroll('web2')
  t.is((await register(server, evil.token, victim.agentId, 'web1')).status, 403)
  t.is((await register(server, evil.token, 'new-agent', 'web1')).status, 403)
  t.is((await register(server, evil.token, 'new-agent', 'web3')).status, 403)
  t.is((await server.data('GET', '/api/hosts')).totalElements, 2)
  t.is((await beat(server, victim.agentId, victim.token)).status, 200)
})

test('P03 after a lost reply, the same token repeats the registration without a second use', async (t) => {
  const server = await startTestServer(t)
  const token = await enrollment(server)
  const lost = (await register(server, token, 'a', 'web1')).body.data
  const again = (await register(server, token, 'a', 'web1')).body.data
  t.is(again.hostId, lost.hostId)
  t.is((await beat(server, 'a', lost.token)).status, 401)
  t.is((await beat(server, 'a', again.token)).status, 200)
  t.not((await register(server, token, 'a', 'web1')).status, 200)
  t.is((await beat(server, 'a', again.token)).status, 200)
})

test('P01 a token bound to a host replaces its agent, whose link and token end', async (t) => {
  const server = await startTestServer(t)
  const former = await server.enroll('web1')
  const link = await ScriptedAgent.link(server, former)
  const token = await enrollment(server, { hostId: former.hostId })
  const { body } = await register(server, token, 'reinstalled', 'some-other-name')
  t.is(body.data.hostId, former.hostId)
  t.is((await link.closed).code, 4401)
  t.is((await beat(server, former.agentId, former.token)).status, 401)
  const host = await server.data('GET', `/api/hosts/${former.hostId}`)
  t.is(host.hostname, 'web1')
  t.is(host.agent.agentId, 'reinstalled')
})

test('P01 an ADMIN binds an agent to a host of this name that has none', async (t) => {
  const server = await startTestServer(t)
  const created = await server.data('POST', '/api/hosts', {
    hostname: 'web1',
    ip: '10.0.0.9',
    tags: { a: '1' },
  })
  const { body } = await register(server, server.token, 'a', 'web1', { ipAddresses: ['10.9.9.9'] })
  t.is(body.data.hostId, created.id)
  const host = await server.data('GET', `/api/hosts/${created.id}`)
  t.is(host.ip, '10.0.0.9')
  t.deepEqual(host.tags, { a: '1' })
  t.is((await register(server, server.token, 'b', 'web1')).status, 409)
  t.is((await register(server, server.token, 'a', 'web1')).status, 200)
})

test('P01 an agent renews its registration with its own token', async (t) => {
  const server = await startTestServer(t)
  const agent = await server.enroll('web1')
  const { status, body } = await register(server, agent.token, agent.agentId, 'web1', { agentVersion: '2' })
  t.is(status, 200)
  t.is((await beat(server, agent.agentId, agent.token)).status, 401)
  t.is((await beat(server, agent.agentId, body.data.token)).status, 200)
})

test('P05 P06 heartbeats and metrics make a host ONLINE or WARNING, with a reason', async (t) => {
  const server = await startTestServer(t)
  const { hostId, agentId, token } = await server.enroll('web1')
  const headers = { authorization: `Bearer ${token}` }
  const host = () => server.data('GET', `/api/hosts/${hostId}`)
  const report = (usagePercent: number, at = new Date().toISOString()) =>
    server.api(
      'POST',
      '/api/agent/metrics',
      {
        agentId,
        timestamp: at,
        cpu: { usagePercent: 1, loadAvg1m: 0, loadAvg5m: 0, loadAvg15m: 0 },
        memory: { totalMB: 1, usedMB: 1, availableMB: 1, usagePercent: 10 },
        disk: [{ mountPoint: '/var', totalGB: 1, usedGB: 1, usagePercent }],
        network: { rxBytesPerSec: 0, txBytesPerSec: 0, connections: 0 },
      },
      headers,
    )
  await server.api('POST', '/api/agent/heartbeat', { agentId, status: 'DEGRADED', uptime: 5 }, headers)
  t.is((await host()).status, 'WARNING')
  await beat(server, agentId, token)
  t.is((await host()).status, 'ONLINE')
  const ahead = new Date(Date.now() + 86_400_000).toISOString()
  t.is((await report(93, ahead)).status, 200)
  t.is((await host()).statusReason, 'disk /var 93 %')
  await report(40)
  await report(99, '2001-01-01T00:00:00.000Z')
  t.like(await host(), { status: 'ONLINE', statusReason: null })
  t.is((await host()).metrics.disk[0].usagePercent, 40)
  t.is((await host()).metrics.agentId, undefined)
  t.is((await server.api('POST', '/api/agent/heartbeat', { agentId, status: 'fine' }, headers)).status, 400)
})

test('a host without heartbeats is OFFLINE after three intervals, and ONLINE with the next heartbeat', async (t) => {
  let stopped: number | null = null
  const clock = { ...systemClock, monotonic: () => stopped ?? performance.now() }
  const server = await startTestServer(t, { heartbeatInterval: 0.3, clock })
  const { hostId, agentId, token } = await server.enroll('web1')
  const host = () => server.data('GET', `/api/hosts/${hostId}`)
  await until('it is OFFLINE', async () => (await host()).status === 'OFFLINE')
  t.regex((await host()).statusReason, /^no heartbeat for \d+ s$/)
  // Stops the clock so that the host does not go silent before the check.
  stopped = performance.now()
  await beat(server, agentId, token)
  t.is((await host()).status, 'ONLINE')
})

test('S03 a revoked agent cannot return with the enrollment token that it used', async (t) => {
  const server = await startTestServer(t)
  const { token } = await server.data('POST', '/api/enrollment-tokens', {})
  const register = () =>
    server.api(
      'POST',
      '/api/agent/register',
      { agentId: 'a1', hostname: 'web1' },
      { authorization: `Bearer ${token}` },
    )
  const { hostId } = (await register()).body.data
  t.is((await register()).status, 200, 'a lost reply may be repeated')
  await server.data('DELETE', `/api/hosts/${hostId}/agent`)
  t.is((await register()).status, 403)
})

test('S10 an agent that keeps registering gets 429 with Retry-After and causes no write; an ADMIN may continue', async (t) => {
  const server = await startTestServer(t)
  let { token, agentId } = await server.enroll('web1')
  const entries = async () => (await server.data('GET', '/api/audit?action=agent.register')).totalElements
  for (let n = 0; n < 10; n++) {
    const { status, body } = await register(server, token, agentId, 'web1')
    t.is(status, 200)
    token = body.data.token
  }
  const before = (await server.data('GET', '/api/hosts/1')).agent.registeredAt
  const refused = await register(server, token, agentId, 'web1')
  t.is(refused.status, 429)
  t.true(Number(refused.headers.get('retry-after')) > 0)
  t.is((await server.data('GET', '/api/hosts/1')).agent.registeredAt, before)
  t.is((await beat(server, agentId, token)).status, 200)
  t.true((await entries()) >= 11)
  t.is((await register(server, server.token, agentId, 'web1')).status, 200)
})
