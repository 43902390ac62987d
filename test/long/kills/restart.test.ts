import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import test from 'ava'
import { restartContract } from '../../contracts/restart.ts'
import { type Identity, ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { counted, finished, startTask } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'

restartContract(test, 'killed with kill -9', (t) => startServerProcess(t))

test('a host has time to reconnect after a server restart, even if its status was not stored yet', async (t) => {
  const server = await startServerProcess(t)
  const identity = await server.enroll('web1')
  const taskId = await startTask(server, [identity.hostId], { queueSeconds: 1 })
  await server.restart()
  const agent = await delay(2000).then(() => ScriptedAgent.link(server, identity))
  agent.serve()
  t.is((await finished(server, taskId)).status, 'SUCCESS')
})

test('F07 a task started right after kill -9 waits for an enrolled host without a known status', async (t) => {
  const server = await startServerProcess(t)
  const identity = await server.enroll('web1')
  await server.kill()
  await rm(join(server.dataDir, 'presence.json'), { force: true })
  await server.start()
  const taskId = await startTask(server, [identity.hostId])
  const agent = await delay(1500).then(() => ScriptedAgent.link(server, identity))
  agent.serve()
  t.is((await finished(server, taskId)).status, 'SUCCESS')
})

test('a pause between batches survives a restart and is not lengthened by it', async (t) => {
  const server = await startTestServer(t)
  const identities = [await server.enroll('web1'), await server.enroll('web2')]
  const agent = await ScriptedAgent.link(server, identities[0] as Identity)
  const hostIds = identities.map(({ hostId }) => hostId)
  const taskId = await startTask(server, hostIds, { strategy: 'ROLLING', batchSize: 1, pauseSeconds: 2 })
  await agent.execution(taskId)
  agent.complete(taskId, 0, { lastSequence: -1 })
  await agent.released(taskId)
  const paused = Date.now()
  await counted(server, taskId, ({ SUCCESS }) => SUCCESS === 1)
  await server.restart()
  const [, second] = await Promise.all(identities.map((identity) => ScriptedAgent.link(server, identity)))
  await second?.settled()
  if (Date.now() - paused < 1900) t.false(second?.heard.some(({ type }) => type === 'EXECUTE_SCRIPT'))
  await second?.execution(taskId)
  const waited = Date.now() - paused
  t.true(waited >= 1900 && waited < 3500, `the pause took ${waited} ms`)
  second?.complete(taskId, 0, { lastSequence: -1 })
  t.is((await finished(server, taskId)).status, 'SUCCESS')
})
