import { EventEmitter, once } from 'node:events'
import test from 'ava'
import { restartContract } from '../../contracts/restart.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { followEvents } from '../../helpers/clients/follow.ts'
import { startTask, task } from '../../helpers/clients/tasks.ts'
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
