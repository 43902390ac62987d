import test from 'ava'
import { hostNamed, pageOf, startFakeServer } from '../../fixtures/fake-server.ts'
import { cleanEnv, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { until } from '../../helpers/until.ts'

test('a server that hangs is not waited for when a session is to be ended', async (t) => {
  const server = await startFakeServer(t, {
    'GET /api/hosts': () => pageOf([hostNamed(1, 'web1')]),
    'POST /api/terminals': () => ({ sessionId: 'session-1' }),
    'DELETE /api/terminals/session-1': () => undefined,
  })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'x' })
  const { child, done } = startRsm(['terminal', 'web1', '--', 'true'], env)
  t.teardown(() => child.kill())
  // A call by itself waits for an answer for a minute.
  await until('it has ended', () => child.exitCode !== null, 30_000)
  const { exit, stderr } = await done
  t.true(server.seen.some(({ method }) => method === 'DELETE'))
  t.is(exit, 5, stderr)
})
