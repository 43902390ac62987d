import test from 'ava'
import { hostNamed, pageOf, startFakeServer } from '../../fixtures/fake-server.ts'
import { cleanEnv, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { until } from '../../helpers/until.ts'

test('a session ends without waiting for a server that hangs', async (t) => {
  const server = await startFakeServer(t, {
    'GET /api/hosts': () => pageOf([hostNamed(1, 'web1')]),
    'POST /api/terminals': () => ({ sessionId: 'session-1' }),
    'DELETE /api/terminals/session-1': () => undefined,
  })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'x' })
  const { child, done } = startRsm(['terminal', 'web1', '--', 'true'], env)
  t.teardown(() => child.kill())
  // A call on its own waits a minute for a response.
  await until('the command has ended', () => child.exitCode !== null, 30_000)
  const { exit, stderr } = await done
  t.true(server.seen.some(({ method }) => method === 'DELETE'))
  t.is(exit, 5, stderr)
})
