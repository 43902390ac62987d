import { setTimeout as delay } from 'node:timers/promises'
import test from 'ava'
import { hostNamed, pageOf, startFakeServer } from '../fixtures/fake-server.ts'
import { cleanEnv, startRsm, temporaryDirectory } from '../fixtures/rsm.ts'

test('a server that hangs is not waited for when a session is to be ended', async (t) => {
  const server = await startFakeServer(t, {
    'GET /api/hosts': () => pageOf([hostNamed(1, 'web1')]),
    'POST /api/terminals': () => ({ sessionId: 'session-1' }),
    'DELETE /api/terminals/session-1': () => undefined,
  })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'x' })
  const { child, done } = startRsm(['terminal', 'web1', '--', 'true'], env)
  t.teardown(() => child.kill())
  const patience = new AbortController()
  // A call by itself waits for an answer for a minute.
  const ran = await Promise.race([done, delay(30_000, null, patience)])
  patience.abort()
  t.true(server.seen.some(({ method }) => method === 'DELETE'))
  t.is(ran?.exit, 5, ran?.stderr)
})
