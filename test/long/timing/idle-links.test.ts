import { setTimeout as delay } from 'node:timers/promises'
import test from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask, task } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

test('P14 a link without a data frame or a ping of the agent is closed with 4408; its task continues', async (t) => {
  const wsIdleTimeout = 4
  const server = await startTestServer(t, { wsIdleTimeout })
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  const pings = setInterval(() => agent.socket.ping(), 200)
  t.teardown(() => clearInterval(pings))
  const taskId = await startTask(server, [identity.hostId])
  await agent.execution(taskId)
  clearInterval(pings)
  t.is((await agent.closed).code, 4408)
  t.is((await task(server, taskId)).results[0]?.status, 'RUNNING')
  const pinging = await ScriptedAgent.link(server, identity, {
    tasks: [{ taskId, state: 'RUNNING', lastSequence: -1 }],
  })
  for (let waited = 0; waited < 1.5 * wsIdleTimeout; waited += 0.2) {
    await delay(200)
    pinging.socket.ping()
  }
  pinging.complete(taskId, 0, { lastSequence: -1 })
  t.is((await finished(server, taskId)).status, 'SUCCESS')
})
