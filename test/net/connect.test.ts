import { resolve } from 'node:path'
import test from 'ava'
import { startFakeServer } from '../fixtures/fake-server.ts'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import { FakeServer } from '../helpers/servers/fake-server.ts'

const slowAddress = { NODE_OPTIONS: `--import=${resolve('dist/test/fixtures/slow-address.js')}` }
const named = (url: string) => url.replace('127.0.0.1', 'rsm.test')

test('a distant server is reached by name even if one of its addresses has no route', async (t) => {
  const { url } = await startFakeServer(t, { 'GET /api/auth/me': () => ({ id: 1, username: 'ann' }) })
  const env = cleanEnv(temporaryDirectory(t), { ...slowAddress, RSM_URL: named(url), RSM_TOKEN: 'x' })
  const { exit, stderr } = await runRsm(['whoami'], env)
  t.is(exit, 0, stderr)

  const server = await FakeServer.start()
  t.teardown(() => server.close())
  const home = temporaryDirectory(t)
  const argv = ['agent', 'run', '--url', named(server.url), '--data-dir', home, '--allow-unsigned']
  const { child, done } = startRsm(argv, cleanEnv(home, { ...slowAddress, RSM_AGENT_ENROLL_TOKEN: 'x' }))
  t.teardown(async () => {
    child.kill()
    await done
  })
  await server.linked(1)
  t.pass()
})
