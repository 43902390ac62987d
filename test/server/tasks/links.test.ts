import test, { type ExecutionContext } from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { entries, finished, running, startTask, task } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

async function sent(t: ExecutionContext, options: { storeId?: string | null; task?: object } = {}) {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, {
    storeId: options.storeId === undefined ? 'store-1' : options.storeId,
  })
  const taskId = await startTask(server, [identity.hostId], { ...options.task })
  await agent.execution(taskId)
  return { server, identity, agent, taskId }
}

test('P17 an execution not yet named when its link is cut is sent again to the same journal', async (t) => {
  const { server, identity, agent, taskId } = await sent(t)
  await agent.cut()
  const again = await ScriptedAgent.link(server, identity)
  const execution = await again.execution(taskId)
  t.truthy(execution.signature)
  again.complete(taskId, 0, { lastSequence: -1 })
  t.is((await finished(server, taskId)).status, 'SUCCESS')
})

test('P17 an execution named before its link is cut is not sent again, and continues from the stored output', async (t) => {
  const { server, identity, agent, taskId } = await sent(t)
  agent.output(taskId, 0, 'a')
  await agent.acknowledged(taskId, 0)
  await agent.cut()
  const again = await ScriptedAgent.link(server, identity, {
    tasks: [{ taskId, state: 'RUNNING', lastSequence: 1 }],
  })
  t.is((await again.next('SCRIPT_ACK')).sequence, 0)
  again.output(taskId, 1, 'b')
  again.complete(taskId, 0, { lastSequence: 1 })
  await again.released(taskId)
  t.false(again.heard.some(({ type }) => type === 'EXECUTE_SCRIPT'))
  t.is((await entries(server, taskId)).map(({ data }) => data).join(''), 'ab')
})

test('P17 executions sent to another journal are LOST, and nothing starts twice', async (t) => {
  const { server, identity, agent, taskId } = await sent(t)
  await agent.cut()
  const other = await ScriptedAgent.link(server, identity, { storeId: 'store-2' })
  const [result] = (await finished(server, taskId)).results
  t.is(result?.status, 'LOST')
  t.false(result?.outputComplete)
  t.regex(result?.error ?? '', /journal/)
  await other.settled()
  t.false(other.heard.some(({ type }) => type === 'EXECUTE_SCRIPT'))
})

test('P17 an execution that its agent named once but no longer names is LOST', async (t) => {
  const { server, identity, agent, taskId } = await sent(t)
  await agent.cut()
  const named = await ScriptedAgent.link(server, identity, {
    tasks: [{ taskId, state: 'QUEUED', lastSequence: -1 }],
  })
  await named.next('SCRIPT_ACK')
  await named.cut()
  await ScriptedAgent.link(server, identity)
  const [result] = (await finished(server, taskId)).results
  t.is(result?.status, 'LOST')
  t.regex(result?.error ?? '', /no longer knows/)
})

test('an agent that still has a LOST execution in its queue is asked to cancel it', async (t) => {
  const { server, identity, agent, taskId } = await sent(t)
  await agent.cut()
  const named = { tasks: [{ taskId, state: 'QUEUED', lastSequence: -1 }] }
  await (await ScriptedAgent.link(server, identity, named)).cut()
  const forgetful = await ScriptedAgent.link(server, identity)
  t.is((await finished(server, taskId)).results[0]?.status, 'LOST')
  await forgetful.cut()
  const again = await ScriptedAgent.link(server, identity, named)
  t.is((await again.next('CANCEL_SCRIPT')).taskId, taskId)
})

test('F12 an execution with output that its agent no longer names is LOST, and not sent to a copy of the journal', async (t) => {
  const { server, identity, agent, taskId } = await sent(t)
  agent.output(taskId, 0, 'one')
  await agent.next('SCRIPT_ACK')
  const copy = await ScriptedAgent.link(server, identity)
  const [result] = (await finished(server, taskId)).results
  t.is(result?.status, 'LOST')
  t.regex(result?.error ?? '', /no longer knows/)
  t.false(copy.heard.some(({ type }) => type === 'EXECUTE_SCRIPT'))
})

test('P17 a base-protocol agent is sent an execution once, and its result over a second link still counts', async (t) => {
  const { server, identity, agent, taskId } = await sent(t, { storeId: null })
  await agent.cut()
  const again = await ScriptedAgent.link(server, identity, { storeId: null })
  await again.settled()
  t.false(again.heard.some(({ type }) => type === 'EXECUTE_SCRIPT'))
  again.complete(taskId, 0)
  t.is((await finished(server, taskId)).status, 'SUCCESS')
})

test('P26 an end repeated because its acknowledgement was lost is released, with one result', async (t) => {
  const { server, identity, agent, taskId } = await sent(t)
  agent.output(taskId, 0, 'a')
  agent.complete(taskId, 3, { lastSequence: 0 })
  await finished(server, taskId)
  await agent.cut()
  const again = await ScriptedAgent.link(server, identity, {
    tasks: [{ taskId, state: 'EXITED', lastSequence: 0 }],
  })
  await again.acknowledged(taskId, 0)
  again.complete(taskId, 3, { lastSequence: 0 })
  await again.released(taskId)
  const [result] = (await task(server, taskId)).results
  t.is(result?.exitCode, 3)
  t.is(result?.lateResult, null)
  t.is((await entries(server, taskId)).length, 1)
})

test('P12 a new link replaces the old one, whose frames are void; the task continues', async (t) => {
  const { server, identity, agent, taskId } = await sent(t)
  agent.output(taskId, 0, 'old;')
  await agent.acknowledged(taskId, 0)
  const newer = await ScriptedAgent.link(server, identity, {
    tasks: [{ taskId, state: 'RUNNING', lastSequence: 0 }],
  })
  agent.output(taskId, 1, 'void;')
  t.deepEqual(await agent.closed, { code: 4409, reason: 'replaced by a newer link' })
  await newer.acknowledged(taskId, 0)
  newer.output(taskId, 1, 'new;')
  newer.complete(taskId, 0, { lastSequence: 1 })
  await newer.released(taskId)
  t.is((await entries(server, taskId)).map(({ data }) => data).join(''), 'old;new;')
  t.true((await server.data('GET', `/api/hosts/${identity.hostId}`)).agent.connected)
})

test('P13 F12 three replacements within a minute make the server refuse new links; the current one stays', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const links = []
  for (let n = 0; n < 4; n++) links.push(await ScriptedAgent.link(server, identity))
  for (const link of links.slice(0, 3)) t.is((await link.closed).code, 4409)
  await t.throwsAsync(ScriptedAgent.link(server, identity), { message: 'refused with 409' })
  await links[3]?.settled()
  const host = () => server.data('GET', `/api/hosts/${identity.hostId}`)
  const { status, statusReason } = await host()
  t.is(status, 'WARNING')
  t.regex(statusReason, /two agents/)
  await links[3]?.cut()
  await until('the server notices that the link is gone', async () => !(await host()).agent.connected)
  const next = await ScriptedAgent.link(server, identity)
  await next.settled()
})

test("P04 P15 a link is opened by the agent's own token only", async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const other = await server.enroll('web2')
  const attempts: [string, string, number][] = [
    [identity.agentId, 'rsm_agt_junk', 401],
    [identity.agentId, server.token, 403],
    [identity.agentId, other.token, 403],
    ['nobody', identity.token, 403],
    ['..%2fagent', identity.token, 403],
  ]
  for (const [agentId, token, status] of attempts)
    await t.throwsAsync(ScriptedAgent.link(server, { ...identity, agentId, token }), {
      message: `refused with ${status}`,
    })
})

test('executions marked as sent while their link is replaced are each sent exactly once', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  let link = await ScriptedAgent.link(server, identity, { maxExecutions: 100 })
  const known = new Set<string>()
  const tasks: string[] = []
  // A third replacement would count as a second agent.
  for (let round = 0; round < 2; round++) {
    const starting = Array.from({ length: 8 }, () => startTask(server, [identity.hostId]))
    const [next] = await Promise.all([
      ScriptedAgent.link(server, identity, { maxExecutions: 100, hello: false }),
      ...starting,
    ])
    await link.closed
    for (const { type, payload } of link.heard) if (type === 'EXECUTE_SCRIPT') known.add(payload.taskId)
    next.hello('store-1', {
      maxExecutions: 100,
      tasks: [...known].map((taskId) => ({ taskId, state: 'RUNNING' as const, lastSequence: -1 })),
    })
    tasks.push(...(await Promise.all(starting)))
    link = next
  }
  for (const taskId of tasks) await running(server, taskId)
  await link.settled()
  for (const taskId of tasks) {
    if (!known.has(taskId)) await link.execution(taskId)
    link.complete(taskId, 0, { lastSequence: -1 })
    t.is((await finished(server, taskId)).status, 'SUCCESS')
  }
})

test('a host counts as connected once its agent can receive frames; an agent of rsm, after its HELLO', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const isConnected = async () =>
    (await server.data('GET', `/api/hosts/${identity.hostId}`)).agent.connected as boolean
  const first = await ScriptedAgent.link(server, identity, { hello: false })
  t.false(await isConnected())
  first.hello('store-1')
  await until('its HELLO has arrived', isConnected)
  const second = await ScriptedAgent.link(server, identity, { hello: false })
  await first.closed
  t.false(await isConnected(), 'the newer link has not sent HELLO yet')
  second.hello('store-1')
  await until('the HELLO of the newer one has arrived', isConnected)
  const seedOnly = await ScriptedAgent.link(server, identity, { storeId: null })
  await second.closed
  t.true(await isConnected())
  seedOnly.socket.terminate()
  await until('the link is gone', async () => !(await isConnected()))
  t.pass()
})
