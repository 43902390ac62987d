import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { finished } from '../../helpers/clients/tasks.ts'
import { makeBuild } from '../../helpers/releases/build.ts'
import { newReleaseKey } from '../../helpers/releases/release-key.ts'
import { release, upgradableAgent } from '../../helpers/releases/upgradable.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const key = newReleaseKey()

const upgrade = async (server: TestServer, selector: string, body: object = {}) =>
  finished(
    server,
    (await server.data('POST', '/api/tasks', { upgrade: {}, target: { selector }, ...body })).taskId,
  )

const versionOf = async (server: TestServer, hostname: string) =>
  (await server.data('GET', `/api/hosts?selector=${hostname}`)).content[0].agent.agentVersion

test('an agent upgrades to the server’s release while its script runs, and the same version again is SUCCESS', async (t) => {
  const server = await startTestServer(t)
  const first = makeBuild(t, { version: '0.1.0', key })
  const second = makeBuild(t, { version: '0.2.0', key })
  const agent = await upgradableAgent(t, server, first, 'web1')
  await release(server, key, second)
  const { taskId } = await server.data('POST', '/api/tasks', {
    script: { content: 'for i in 1 2 3 4 5 6 7 8; do echo tick $i; sleep 1; done' },
    target: { selector: 'web1' },
  })
  const task = await upgrade(server, 'web1')
  t.like(task, { status: 'SUCCESS', type: 'UPGRADE', firstLine: 'upgrade to 0.2.0' }, JSON.stringify(task))
  t.is(await versionOf(server, 'web1'), '0.2.0')
  t.is(agent.current(), '0.2.0/rsm')
  t.is(agent.state()?.version, '0.2.0')
  const script = await finished(server, taskId)
  t.is(script.results[0]?.status, 'SUCCESS')
  const { entries } = await server.data('GET', `/api/tasks/${taskId}/logs`)
  t.is(
    (entries as { data: string }[]).map(({ data }) => data).join(''),
    [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `tick ${n}\n`).join(''),
  )
  t.is((await upgrade(server, 'web1')).status, 'SUCCESS')
  t.deepEqual(readdirSync(join(agent.dataDir, 'releases')).sort(), ['0.2.0', 'current', 'lock', 'state.json'])
})

test('a release that ends at its start is rolled back, and the rest of the plan is SKIPPED', async (t) => {
  const server = await startTestServer(t)
  const first = makeBuild(t, { version: '0.1.0', key })
  const bad = makeBuild(t, { version: '0.2.0', key, before: 'case $2 in run) exit 3 ;; esac\n' })
  const agents = []
  for (const name of ['web1', 'web2']) agents.push(await upgradableAgent(t, server, first, name))
  await release(server, key, bad)
  const task = await upgrade(server, 'web[1-2]', { strategy: 'SEQUENTIAL', maxFailures: 0 })
  t.deepEqual(
    task.results.map(({ status, error }) => [status, error]),
    [
      ['FAILED', 'rolled back: 0.2.0 ended 3 times before it was linked'],
      ['SKIPPED', task.results[1]?.error ?? null],
    ],
  )
  for (const agent of agents) {
    await until('it is linked', () => agent.state()?.linked === true)
    t.is(agent.state()?.version, '0.1.0')
    t.is(agent.current(), null)
  }
  t.is(await versionOf(server, 'web1'), '0.1.0')
  t.false(existsSync(join(agents[0]?.dataDir ?? '', 'releases/0.2.0')))
})

// Node 22.15 and later only: older versions have no execve.
if ('execve' in process)
  test('a supervised agent upgrades and rolls back within the same process', async (t) => {
    const server = await startTestServer(t)
    const first = makeBuild(t, { version: '0.1.0', key })
    const agent = await upgradableAgent(t, server, first, 'web1', [], { supervised: true })
    await release(server, key, makeBuild(t, { version: '0.2.0', key }))
    const pid = agent.state()?.pid
    t.is((await upgrade(server, 'web1')).status, 'SUCCESS')
    t.like(agent.state(), { version: '0.2.0', pid })
    await release(server, key, makeBuild(t, { version: '0.3.0', key }))
    t.is((await upgrade(server, 'web1')).status, 'SUCCESS')
    t.like(agent.state(), { version: '0.3.0', pid })
    await release(
      server,
      key,
      makeBuild(t, { version: '0.4.0', key, before: 'case $2 in run) exit 3 ;; esac\n' }),
    )
    const [result] = (await upgrade(server, 'web1')).results
    t.is(result?.error, 'rolled back: 0.4.0 ended 3 times before it was linked')
    t.is(agent.state()?.version, '0.3.0')
  })
