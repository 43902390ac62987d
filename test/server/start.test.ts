import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { startServer } from '../../src/server/main.ts'
import { finished, startTask } from '../helpers/clients/tasks.ts'
import { startTestServer } from '../helpers/servers/server.ts'

test('a failed first start leaves no user with an unknown password', async (t) => {
  const busy = await startTestServer(t)
  const dataDir = await mkdtemp(join(tmpdir(), 'rsm-server-'))
  t.teardown(() => rm(dataDir, { recursive: true, force: true }))
  const options = {
    host: '127.0.0.1',
    dataDir,
    heartbeatInterval: 30,
    metricsInterval: 60,
    wsIdleTimeout: 300,
    insecureHttp: false,
    logLevel: 'ERROR',
  } as const
  await t.throwsAsync(startServer({ ...options, port: Number(new URL(busy.url).port) }), {
    message: /in use/,
  })
  const server = await startServer({ ...options, port: 0 })
  t.is(server.createdAdmin?.username, 'admin')
  t.true((server.createdAdmin?.password.length ?? 0) >= 8)
  await server.close()
})

test("a revoked agent's host is OFFLINE at once with that reason, even after a restart, until it joins again", async (t) => {
  const server = await startTestServer(t)
  const { hostId } = await server.enroll('web1')
  const standing = async () => {
    const { status, statusReason } = await server.data('GET', `/api/hosts/${hostId}`)
    return [status, statusReason]
  }
  t.deepEqual(await standing(), ['ONLINE', null])
  await server.data('DELETE', `/api/hosts/${hostId}/agent`)
  const revoked = ['OFFLINE', 'its agent token was revoked']
  t.deepEqual(await standing(), revoked)
  const { results } = await finished(server, await startTask(server, [hostId]))
  t.is(results[0]?.status, 'UNREACHABLE', 'a task does not wait for an agent that cannot connect')
  await server.restart()
  t.deepEqual(await standing(), revoked)
  const { token } = await server.data('POST', '/api/enrollment-tokens', { hostId })
  const again = await server.api(
    'POST',
    '/api/agent/register',
    { agentId: 'another', hostname: 'web1' },
    { authorization: `Bearer ${token}` },
  )
  t.is(again.status, 200)
  t.deepEqual(await standing(), ['ONLINE', null])
})
