import { EventEmitter, once } from 'node:events'
import test from 'ava'
import { control } from '../../../src/cli/command/control.ts'
import type { RunMark } from '../../../src/core/protocol/messages.ts'
import { restartContract } from '../../contracts/restart.ts'
import { givenMark } from '../../helpers/agents/given-mark.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { followEvents } from '../../helpers/clients/follow.ts'
import { finished, startTask, task } from '../../helpers/clients/tasks.ts'
import { scrape } from '../../helpers/metrics/scrape.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

restartContract(test, 'stopped', startTestServer)

test('F17 a stop does not wait for followers, links or async:false calls, and loses none of their tasks', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  const taskId = await startTask(server, [identity.hostId])
  await agent.execution(taskId)
  const url = `${server.url}/api/tasks/${taskId}/logs?follow=true`
  const headers = { authorization: `Bearer ${server.token}` }
  const begun = new EventEmitter()
  const follower = followEvents(url, headers, () => !begun.emit('event'))
  await once(begun, 'event')
  const waiting = server.api('POST', '/api/tasks', {
    script: { content: 'true' },
    target: { hostIds: [identity.hostId] },
    async: false,
  })
  await agent.execution()
  await server.stop()
  await server.restart()
  t.deepEqual(
    (await follower).map(({ event }) => event).filter((event) => event === 'end'),
    [],
  )
  t.is((await waiting).status, 503)
  t.is((await agent.closed).code, 1001)
  t.is((await task(server, taskId)).status, 'RUNNING')
})

const sent = (agent: ScriptedAgent) =>
  agent.heard.flatMap(({ type, payload }) => (type === 'EXECUTE_SCRIPT' ? [payload.taskId] : []))

test('A02 P49 an unknown mark holds back executions PENDING since before the start until confirmed; new tasks run', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const waiting = await startTask(server, [identity.hostId], { queueSeconds: 3600 })
  await server.restart()
  const unknown = givenMark(server, identity.agentId, { run: 'lost-with-the-store', sequence: 1 })
  const agent = await ScriptedAgent.link(server, identity, { mark: unknown })
  const next = await startTask(server, [identity.hostId])
  await agent.execution(next)
  agent.complete(next, 0, { lastSequence: -1 })
  t.is((await finished(server, next)).status, 'SUCCESS')
  t.deepEqual(sent(agent), [next])
  await server.restart()
  const again = await ScriptedAgent.link(server, identity)
  await again.settled()
  t.deepEqual(sent(again), [])
  t.is((await task(server, waiting)).results[0]?.status, 'PENDING')
  t.like(await control(server.dataDir, 'confirm-restore', { cancelPending: false }), { executions: 1 })
  await again.execution(waiting)
  again.complete(waiting, 0, { lastSequence: -1 })
  t.is((await finished(server, waiting)).status, 'SUCCESS')
})

test('P49 a mark not issued to this agent by this server holds nothing, but is counted and audited', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const liar = await server.enroll('web2')
  const beat = async (mark?: RunMark) => {
    const body = { agentId: liar.agentId, status: 'HEALTHY', ...(mark && { mark }) }
    const headers = { authorization: `Bearer ${liar.token}` }
    return (await server.api('POST', '/api/agent/heartbeat', body, headers)).body.data.mark as RunMark
  }
  const waiting = await startTask(server, [identity.hostId], { queueSeconds: 3600 })
  await server.restart()
  const own = await beat()
  const lies = [
    { run: 'no-such-run', sequence: 1 },
    { run: 'no-such-run', sequence: 1, mac: 'A'.repeat(43) },
    givenMark(server, identity.agentId, { run: 'no-such-run', sequence: 1 }),
    { ...own, sequence: own.sequence + 1000 },
    { ...own, run: 'no-such-run' },
  ]
  for (const lie of lies) await beat(lie)
  await (await ScriptedAgent.link(server, liar, { mark: lies[1] })).settled()
  t.is((await server.data('GET', '/api/server/status')).restore, null)
  const agent = await ScriptedAgent.link(server, identity)
  await agent.execution(waiting)
  t.is((await scrape(server)).of('rsm_agent_marks_unproven_total'), lies.length + 1)
  const audited = async () => (await server.data('GET', '/api/audit?action=agent.mark')).content
  await until('all are audited', async () => (await audited()).length === lies.length + 1)
  for (const { actor, outcome } of await audited()) t.is(`${actor.id} ${outcome}`, `${liar.agentId} REFUSED`)
})

test('P49 executions and heartbeat answers carry a mark, which proves nothing on the same store', async (t) => {
  const server = await startTestServer(t)
  const { hostId, agentId, token } = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, { hostId, agentId, token })
  const taskId = await startTask(server, [hostId])
  const { mark } = await agent.execution(taskId)
  agent.complete(taskId, 0, { lastSequence: -1 })
  await agent.released(taskId)
  const beat = { agentId, status: 'HEALTHY' }
  const answer = await server.api('POST', '/api/agent/heartbeat', beat, { authorization: `Bearer ${token}` })
  t.is(typeof mark?.run, 'string')
  t.is(answer.body.data.mark.run, mark?.run)
  t.true(answer.body.data.mark.sequence > (mark?.sequence ?? Infinity), 'the end is on disk by then')
  await agent.cut()
  const waiting = await startTask(server, [hostId], { queueSeconds: 3600 })
  await server.restart()
  const again = await ScriptedAgent.link(server, { hostId, agentId, token }, { mark: answer.body.data.mark })
  t.not((await again.execution(waiting)).mark?.run, mark?.run)
})
