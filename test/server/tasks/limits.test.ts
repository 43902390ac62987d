import test from 'ava'
import type { Host } from '../../../src/core/protocol/http/hosts.ts'
import type { LimitName } from '../../../src/core/tasks/limits.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask, task } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

test('P09 limits are sent, signed, to an agent that enforces them, and the task shows them', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const all: LimitName[] = ['memoryMB', 'processes', 'cpuPercent']
  const agent = await ScriptedAgent.link(server, identity, { capabilities: { limits: all } })
  const limits = { memoryMB: 64, cpuPercent: 50 }
  const taskId = await startTask(server, [identity.hostId], { limits, runAs: 'app' })
  const execution = await agent.execution(taskId)
  t.deepEqual(execution.limits, limits)
  t.like(await task(server, taskId), { limits, runAs: 'app' })
  agent.complete(taskId, 1, { lastSequence: -1 })
  await finished(server, taskId)
  const again = await server.data('POST', `/api/tasks/${taskId}/retry`, {})
  const { limits: kept, runAs } = await agent.execution(again.taskId)
  t.deepEqual({ limits: kept, runAs }, { limits, runAs: 'app' })
})

test('P09 an agent that lacks a limit is not sent the script: its host is FAILED with 126, and the plan continues', async (t) => {
  const server = await startTestServer(t)
  const old = await server.enroll('web1')
  const partly = await server.enroll('web2')
  const base = await server.enroll('web3')
  const agents = [
    await ScriptedAgent.link(server, old),
    await ScriptedAgent.link(server, partly, { capabilities: { limits: ['processes'] } }),
    await ScriptedAgent.link(server, base, { storeId: null }),
  ]
  for (const agent of agents) await agent.settled()
  const hostIds = [old.hostId, partly.hostId, base.hostId]
  const limits = { memoryMB: 64, processes: 9 }
  const taskId = await startTask(server, hostIds, { limits, strategy: 'SEQUENTIAL', maxFailures: 3 })
  const { status, results } = await finished(server, taskId)
  t.is(status, 'FAILED')
  t.deepEqual(
    results.map(({ status: end, exitCode, error }) => [end, exitCode, error]),
    ['memory and processes', 'memory', 'memory and processes'].map((words) => [
      'FAILED',
      126,
      `not started: the agent of this host cannot limit ${words}`,
    ]),
  )
  for (const agent of agents) t.false(agent.heard.some(({ type }) => type === 'EXECUTE_SCRIPT'))
  const again = await startTask(server, [old.hostId], {})
  t.is((await agents[0]?.execution(again))?.limits, undefined)
})

test('a base-protocol agent is not sent scripts that must run as another user', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { storeId: null })
  await agent.settled()
  const { results } = await finished(server, await startTask(server, [identity.hostId], { runAs: 'app' }))
  t.like(results[0], { status: 'FAILED', exitCode: 126 })
  t.regex(results[0]?.error ?? '', /cannot run scripts as another user/)
})

test('limits out of bounds or with unknown names are a 400 that names them', async (t) => {
  const server = await startTestServer(t)
  const { hostId } = await server.enroll('web1')
  for (const [limits, field] of [
    [{ memoryMB: 1 }, 'limits.memoryMB'],
    [{ processes: 1.5 }, 'limits.processes'],
    [{ cpuPercent: 0 }, 'limits.cpuPercent'],
    [{ memory: 64 }, 'limits.memory'],
    [[], 'limits'],
  ] as const) {
    const body = { script: { content: 'true' }, target: { hostIds: [hostId] }, limits }
    const { status, body: answer } = await server.api('POST', '/api/tasks', body)
    t.is(status, 400)
    t.deepEqual(
      answer.errors?.map(({ field: at }) => at),
      [field],
    )
  }
})

test('P09 a host shows how its agent runs scripts, even after a server restart, or null if never reported', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const shown = async () => ((await server.data('GET', `/api/hosts/${identity.hostId}`)) as Host).agent
  const unsaid = {
    runAs: null,
    runsAsRoot: null,
    sandbox: null,
    containment: null,
    terminal: null,
    enforces: null,
  }
  t.like(await shown(), unsaid)
  const said = {
    runAs: 'deploy',
    runsAsRoot: false,
    sandbox: 'strict',
    containment: 'pid-namespace',
  } as const
  const limits = ['processes', 'of a newer agent', 'memoryMB'] as ('processes' | 'memoryMB')[]
  const capabilities = { ...said, terminal: true, limits }
  const agent = await ScriptedAgent.link(server, identity, { capabilities })
  await agent.settled()
  t.like(await shown(), { ...said, terminal: true, enforces: ['memoryMB', 'processes'] })
  await server.restart()
  t.like(await shown(), { ...said, terminal: true, enforces: ['memoryMB', 'processes'] })
  agent.socket.terminate()
  await agent.closed
  const base = await ScriptedAgent.link(server, identity, { storeId: null })
  await base.settled()
  t.like(await shown(), unsaid)
})
