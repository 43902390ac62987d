import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { givenMark } from '../../helpers/agents/given-mark.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { startReceiver } from '../../helpers/servers/webhook-receiver.ts'
import { until } from '../../helpers/until.ts'

const webhooks = { insecure: true, allow: ['127.0.0.1'] }

test('webhooks report a restore proved by an agent, and events that happen while it is unconfirmed', async (t) => {
  const server = await startTestServer(t, { webhooks })
  const receiver = await startReceiver(t)
  const [witness, other] = [await server.enroll('web1'), await server.enroll('web2')]
  const events = ['server.restore', 'agent.revoked']
  await server.data('POST', '/api/webhooks', { name: 'call', url: receiver.url, events })
  const { agentId, hostId, token } = witness
  const mark = givenMark(server, agentId, { run: 'lost-with-the-store', sequence: 1 })
  const beat = { agentId, status: 'HEALTHY', mark }
  await server.api('POST', '/api/agent/heartbeat', beat, { authorization: `Bearer ${token}` })
  const [told] = await receiver.first(1)
  t.like(told?.body, { type: 'server.restore', data: { hostId, agentId, tasks: 0 } })
  t.regex(told?.body.data.reason, /the agent of web1 knows of later work/)
  await server.data('DELETE', `/api/hosts/${other.hostId}/agent`)
  const [, revoked] = await receiver.first(2)
  t.like(revoked?.body, { type: 'agent.revoked', data: { hostname: 'web2' } })
  t.not((await server.data('GET', '/api/server/status')).restore, null)
})

test('webhooks report rsm server restore once the server starts; deliveries pending in the backup stay pending', async (t) => {
  const server = await startTestServer(t, { webhooks })
  const receiver = await startReceiver(t)
  receiver.answers(500)
  const { hostId } = await server.enroll('web1')
  const events = ['server.restore', 'agent.revoked']
  const { id } = await server.data('POST', '/api/webhooks', { name: 'call', url: receiver.url, events })
  await server.data('DELETE', `/api/hosts/${hostId}/agent`)
  await receiver.first(1)
  const home = temporaryDirectory(t)
  const rsm = async (...words: string[]) => {
    const { exit, stderr } = await runRsm(['server', ...words, '--data-dir', server.dataDir], cleanEnv(home))
    t.is(exit, 0, stderr)
  }
  await rsm('backup', join(home, 'backup'))
  await server.stop()
  await cp(join(server.dataDir, 'keys'), join(home, 'keys'), { recursive: true })
  await rm(server.dataDir, { recursive: true })
  await rsm('restore', join(home, 'backup'))
  await cp(join(home, 'keys'), join(server.dataDir, 'keys'), { recursive: true })
  receiver.answers(204)
  await server.restart()
  const told = () => receiver.got.find(({ body }) => body.type === 'server.restore')
  await until('it is reported', () => told() !== undefined)
  t.like(told()?.body.data, { hostId: null, agentId: null, tasks: 0 })
  t.regex(told()?.body.data.reason, /^rsm server restore brought back the backup of /)
  const { content } = await server.data('GET', `/api/webhooks/${id}/deliveries?status=WAITING`)
  t.deepEqual(
    content.map(({ event }: { event: string }) => event),
    ['agent.revoked'],
  )
})
