import { randomBytes } from 'node:crypto'
import { ScriptedAgent } from '../../../helpers/agents/scripted-agent.ts'
import { agentReads, upload } from '../../../helpers/clients/files.ts'
import { startCluster, clusterTest as test } from '../../../helpers/cluster/cluster.ts'

test('P54 on PostgreSQL those who ask for a file at once share the rate of its task', async (t) => {
  const { front: server } = await startCluster(t, { size: 1 })
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { capabilities: { files: true } })
  const { fileId } = await upload(server, randomBytes(100_000))
  const copy = { fileId, path: '/srv/f', kind: 'FILE' }
  const target = { hostIds: [identity.hostId] }
  await server.data('POST', '/api/tasks', { copy, target, limitRate: 16_384 })
  await agent.next('COPY_FILE')
  const began = performance.now()
  // Each a tenth of a second of the rate; 200 ms of them go at once.
  const reads = Array.from({ length: 30 }, () => agentReads(server, identity, fileId, 'bytes=0-1637'))
  for (const { status } of await Promise.all(reads)) t.is(status, 206)
  t.true(performance.now() - began > 2500)
})
