import test from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

test('10,000 tiny frames at once are all stored, while other requests are served', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  const taskId = await startTask(server, [identity.hostId])
  await agent.execution(taskId)
  for (let n = 0; n < 10_000; n++) agent.output(taskId, n, 'x')
  const asked = Date.now()
  await server.data('GET', '/api/hosts')
  t.true(Date.now() - asked < 3000)
  agent.complete(taskId, 0, { lastSequence: 9999 })
  const ended = await finished(server, taskId)
  t.is(ended.results[0]?.stdoutBytes, 10_000)
})
