import test, { type ExecutionContext } from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask, task } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const original = { instanceId: 'original', journal: { sequence: 10 } }
const copy = { instanceId: 'copy', journal: { sequence: 10 } }

/** Links an agent with the HELLO `hello` and sends it an execution. */
async function sent(t: ExecutionContext, hello: Parameters<typeof ScriptedAgent.link>[2] = original) {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, hello)
  const taskId = await startTask(server, [identity.hostId])
  const execution = await agent.execution(taskId)
  return { server, identity, agent, taskId, execution }
}

const executions = (agent: ScriptedAgent) =>
  agent.heard.filter(({ type }) => type === 'EXECUTE_SCRIPT').length

test('A01 P48 P50 a copied agent that links while a script runs is not sent that script; the next one runs once', async (t) => {
  const { server, identity, agent, taskId } = await sent(t)
  agent.received(taskId, 11)
  await agent.settled()
  const second = await ScriptedAgent.link(server, identity, copy)
  const [result] = (await finished(server, taskId)).results
  t.is(result?.status, 'LOST')
  t.regex(result?.error ?? '', /the agent no longer knows of it/)
  const next = await startTask(server, [identity.hostId])
  await second.execution(next)
  second.complete(next, 0, { lastSequence: -1 })
  t.is((await finished(server, next)).status, 'SUCCESS')
  t.is(executions(second), 1)
})

test('A01 P48 a copied agent is not sent an execution that the original never acknowledged', async (t) => {
  const { server, identity, taskId } = await sent(t)
  const second = await ScriptedAgent.link(server, identity, copy)
  const [result] = (await finished(server, taskId)).results
  t.is(result?.status, 'LOST')
  t.regex(result?.error ?? '', /restarted, copied or restored/)
  await second.settled()
  t.is(executions(second), 0)
})

const again = [
  ['the same process, whose journal is unchanged', original, 'sent'],
  ['the same process, whose journal has advanced', { ...original, journal: { sequence: 12 } }, 'sent'],
  ['the same process, whose journal has gone back', { ...original, journal: { sequence: 9 } }, 'LOST'],
  ['the same process without its journal', { instanceId: 'original' }, 'LOST'],
  ['another process on the same journal', { ...copy, journal: { sequence: 12 } }, 'LOST'],
  ['an agent of 0.1.0 on the same journal', {}, 'LOST'],
] as const
for (const [who, hello, becomes] of again)
  test(`A01 P48 an execution sent, but neither received nor named: ${who} → ${becomes}`, async (t) => {
    const { server, identity, agent, taskId } = await sent(t)
    await agent.cut()
    const next = await ScriptedAgent.link(server, identity, hello)
    if (becomes === 'LOST') {
      t.is((await finished(server, taskId)).results[0]?.status, 'LOST')
      await next.settled()
      t.is(executions(next), 0)
    } else {
      await next.execution(taskId)
      next.complete(taskId, 0, { lastSequence: -1 })
      t.is((await finished(server, taskId)).status, 'SUCCESS')
    }
  })

test('A01 P48 an agent of 0.1.0, which does not report its process, is sent an unnamed execution again', async (t) => {
  const { server, identity, agent, taskId } = await sent(t, {})
  await agent.cut()
  const next = await ScriptedAgent.link(server, identity)
  await next.execution(taskId)
  next.complete(taskId, 0, { lastSequence: -1 })
  t.is((await finished(server, taskId)).status, 'SUCCESS')
})

test('A01 P48 a journal older than its process reported for another task is not trusted with the rest', async (t) => {
  const { server, identity, agent, taskId } = await sent(t)
  const other = await startTask(server, [identity.hostId])
  await agent.execution(other)
  agent.received(other, 14)
  await agent.settled()
  await agent.cut()
  const next = await ScriptedAgent.link(server, identity, { ...original, journal: { sequence: 12 } })
  t.is((await finished(server, taskId)).results[0]?.status, 'LOST')
  t.is((await finished(server, other)).results[0]?.status, 'LOST')
  await next.settled()
  t.is(executions(next), 0)
})

test('A01 P48 an execution named in a HELLO continues, whichever agent names it', async (t) => {
  const { server, identity, agent, taskId } = await sent(t)
  agent.received(taskId, 11)
  const second = await ScriptedAgent.link(server, identity, {
    ...copy,
    tasks: [{ taskId, state: 'RUNNING', lastSequence: -1 }],
  })
  second.complete(taskId, 0, { lastSequence: -1 })
  t.is((await finished(server, taskId)).status, 'SUCCESS')
  t.is(executions(second), 0)
})

test('A01 P50 a receipt is on disk within a second, so a restarted server knows that the agent has the execution', async (t) => {
  const { server, identity, agent, taskId } = await sent(t)
  agent.received(taskId, 11)
  await agent.settled()
  await server.restart()
  const next = await ScriptedAgent.link(server, identity, { ...original, journal: { sequence: 11 } })
  const [result] = (await finished(server, taskId)).results
  t.is(result?.error, 'the agent no longer knows of it')
  await next.settled()
  t.is(executions(next), 0)
})

test('A01 P50 SCRIPT_RECEIVED for a foreign task is a 403, for an unknown one a 404, for an ended one ignored', async (t) => {
  const { server, agent, taskId } = await sent(t)
  const other = await server.enroll('web2')
  const stranger = await ScriptedAgent.link(server, other, copy)
  stranger.received(taskId, 11)
  t.is((await stranger.next('ERROR')).code, 403)
  agent.received('no-such-task', 11)
  t.is((await agent.next('ERROR')).code, 404)
  agent.complete(taskId, 0, { lastSequence: -1 })
  await finished(server, taskId)
  const late = agent.send('SCRIPT_RECEIVED', { taskId, journal: { sequence: 12 } })
  await agent.settled()
  t.false(agent.heard.some(({ type, payload }) => type === 'ERROR' && payload.refId === late))
})

test('A01 P50 a hundred acknowledgements cost one commit, or none if the scripts end first', async (t) => {
  const server = await startTestServer(t, { metricsOpen: true })
  const commits = async () => {
    const text = await (await fetch(`${server.url}/metrics`)).text()
    return Number(/^rsm_journal_fsync_seconds_count (\d+)/m.exec(text)?.[1])
  }
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { ...original, maxExecutions: 1000 })
  const ids = await Promise.all(Array.from({ length: 100 }, () => startTask(server, [identity.hostId])))
  for (const id of ids) await agent.execution(id)
  const before = await commits()
  for (const [n, id] of ids.entries()) agent.received(id, 11 + n)
  await agent.settled()
  t.is(await commits(), before)
  await until('they are recorded', async () => (await commits()) > before)
  for (const id of ids) t.is((await task(server, id)).results[0]?.status, 'RUNNING')
  t.is(await commits(), before + 1)
})
