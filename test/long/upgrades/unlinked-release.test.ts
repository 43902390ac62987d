import test from 'ava'
import { finished } from '../../helpers/clients/tasks.ts'
import { makeBuild } from '../../helpers/releases/build.ts'
import { newReleaseKey } from '../../helpers/releases/release-key.ts'
import { release, upgradableAgent } from '../../helpers/releases/upgradable.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

test('a release that runs but does not link is ended after a minute and rolled back', async (t) => {
  const key = newReleaseKey()
  const server = await startTestServer(t)
  const agent = await upgradableAgent(t, server, makeBuild(t, { version: '0.1.0', key }), 'web1')
  await release(
    server,
    key,
    makeBuild(t, { version: '0.2.0', key, before: 'case $2 in run) exec sleep 600 ;; esac\n' }),
  )
  const { taskId } = await server.data('POST', '/api/tasks', { upgrade: {}, target: { selector: 'web1' } })
  const [result] = (await finished(server, taskId)).results
  t.deepEqual(
    [result?.status, result?.error],
    ['FAILED', 'rolled back: 0.2.0 was not linked within 60 s, though the server answers'],
  )
  t.like(agent.state(), { version: '0.1.0', linked: true })
  t.is(agent.current(), null)
})
