import test, { type ExecutionContext } from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'

type Identity = Awaited<ReturnType<TestServer['enroll']>>

const beat = (server: TestServer, { agentId, token }: Identity, more: object = {}) =>
  server.api(
    'POST',
    '/api/agent/heartbeat',
    { agentId, status: 'HEALTHY', uptime: 5, ...more },
    { authorization: `Bearer ${token}` },
  )

/** Runs `true` on the host of an agent that the test plays. */
async function works(t: ExecutionContext, server: TestServer, agent: ScriptedAgent, hostId: number) {
  const taskId = await startTask(server, [hostId], { script: { content: 'true' } })
  await agent.execution(taskId)
  agent.complete(taskId)
  t.is((await finished(server, taskId)).status, 'SUCCESS')
}

/** Status of a host whose agent has this version, at a server of 0.1.0. */
async function standingOf(t: ExecutionContext, server: TestServer, agentVersion: string) {
  const identity = await server.enroll(`web-${agentVersion.replaceAll('.', '-')}`)
  const agent = await ScriptedAgent.link(server, identity, { agentVersion })
  await agent.settled()
  t.is((await beat(server, identity)).status, 200)
  const { status, statusReason } = await server.data('GET', `/api/hosts/${identity.hostId}`)
  await works(t, server, agent, identity.hostId)
  return `${status}: ${statusReason}`
}

test('P52 an agent within one minor version works fully; one further away works with a warning on its host', async (t) => {
  const server = await startTestServer(t)
  const { version } = await server.data('GET', '/api/server')
  t.is(version, '0.1.0', 'the versions below are chosen for it')
  for (const near of ['0.0.9', '0.1.7', '0.2.0', '0.2.3-rc.1', 'test'])
    t.is(await standingOf(t, server, near), 'ONLINE: null', near)
  const far = 'more than one minor version newer than the server (0.1.0): upgrade the server'
  for (const version of ['0.3.0', '1.1.0'])
    t.is(await standingOf(t, server, version), `WARNING: the agent is ${version}: ${far}`)
})

test('P52 a HELLO with values and fields of future versions is accepted, and the agent works', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { hello: false })
  const tomorrow: object = {
    agentVersion: '0.2.0',
    storeId: 'store-1',
    instanceId: 'one',
    journal: { sequence: 3, generation: 'x' },
    region: 'moon',
    capabilities: {
      maxExecutions: 4,
      scriptTypes: ['BASH', 'RUBY'],
      containment: 'micro-vm',
      terminal: false,
      runAs: 'deploy',
      runsAsRoot: false,
      sandbox: 'landlock',
      limits: ['memoryMB', 'gpus'],
      teleport: true,
    },
    tasks: [{ taskId: 'another-life', state: 'PAUSED', lastSequence: -1, phase: 'VERIFY' }],
  }
  const timestamp = new Date().toISOString()
  agent.socket.send(JSON.stringify({ type: 'AGENT_HELLO', id: 'h', timestamp, payload: tomorrow }))
  await agent.settled()
  const host = await server.data('GET', `/api/hosts/${identity.hostId}`)
  t.like(host.agent, {
    connected: true,
    agentVersion: '0.2.0',
    containment: null,
    sandbox: null,
    enforces: ['memoryMB'],
    runAs: 'deploy',
  })
  await works(t, server, agent, identity.hostId)
})

test('P52 a heartbeat and a registration with values and fields of future versions are accepted', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const host = () => server.data('GET', `/api/hosts/${identity.hostId}`)
  t.is((await beat(server, identity, { status: 'DRAINING', reason: 'maintenance', battery: 3 })).status, 200)
  t.like(await host(), {
    status: 'WARNING',
    statusReason:
      'the agent reports DEGRADED: it reports DRAINING, which this server does not know: maintenance',
  })
  t.is((await beat(server, identity)).status, 200)
  t.is((await host()).status, 'ONLINE')
  const { token } = await server.data('POST', '/api/enrollment-tokens', {})
  const registration = {
    agentId: 'agent-2',
    hostname: 'web2',
    arch: 'riscv128',
    agentVersion: '7.0.0',
    gpus: [{ name: 'x' }],
  }
  const answer = await server.api('POST', '/api/agent/register', registration, {
    authorization: `Bearer ${token}`,
  })
  t.is(answer.status, 200)
})
