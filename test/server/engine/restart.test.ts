import { EventEmitter, once } from 'node:events'
import test from 'ava'
import { control } from '../../../src/ui/command/control.ts'
import { restartContract } from '../../contracts/restart.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { followEvents } from '../../helpers/clients/follow.ts'
import { finished, startTask, task } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

restartContract(test, 'stopped', startTestServer)

test('F17 a stop does not wait for followers, links or callers of async:false, and none of it is lost', async (t) => {
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

test('P49 a mark that the store does not know holds what was PENDING before this start until that is confirmed; new tasks run', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const waiting = await startTask(server, [identity.hostId], { queueSeconds: 3600 })
  await server.restart()
  const unknown = { run: 'lost-with-the-store', sequence: 1 }
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

test('P49 executions and answers to heartbeats carry a mark, which proves nothing to later starts on the same store', async (t) => {
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
  t.true(answer.body.data.mark.sequence > (mark?.sequence ?? Infinity), 'the end is on disk since')
  await agent.cut()
  const waiting = await startTask(server, [hostId], { queueSeconds: 3600 })
  await server.restart()
  const again = await ScriptedAgent.link(server, { hostId, agentId, token }, { mark: answer.body.data.mark })
  t.not((await again.execution(waiting)).mark?.run, mark?.run)
})
