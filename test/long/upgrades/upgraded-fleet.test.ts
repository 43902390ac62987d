import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { counted, entries, finished } from '../../helpers/clients/tasks.ts'
import { patience } from '../../helpers/patience.ts'
import { makeBuild } from '../../helpers/releases/build.ts'
import { newReleaseKey } from '../../helpers/releases/release-key.ts'
import { release, upgradableAgent } from '../../helpers/releases/upgradable.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { ScriptedTerminal } from '../../helpers/terminals/terminal-client.ts'
import { until } from '../../helpers/until.ts'

const count = 20

test('a bad release stops at the first of 20 busy agents and is rolled back; a good one upgrades all', async (t) => {
  const key = newReleaseKey()
  const server = await startTestServer(t)
  const first = makeBuild(t, { version: '0.1.0', key })
  const bad = makeBuild(t, { version: '0.2.0', key, before: 'case $2 in run) exit 3 ;; esac\n' })
  const good = makeBuild(t, { version: '0.3.0', key })
  const names = Array.from({ length: count }, (_, at) => `web${String(at + 1).padStart(2, '0')}`)
  const agents = await Promise.all(names.map((name) => upgradableAgent(t, server, first, name)))
  const scratch = temporaryDirectory(t)
  const stop = join(scratch, 'stop')
  const { taskId } = await server.data('POST', '/api/tasks', {
    script: {
      content: `echo start >> ${scratch}/$RSM_HOST; n=0
while [ ! -e ${stop} ]; do n=$((n+1)); echo tick $n; echo tick $n >> ${scratch}/$RSM_HOST.said; sleep 0.5; done`,
    },
    timeout: 0,
    target: { selector: 'web[01-20]' },
  })
  await until('all scripts run', () => names.every((name) => existsSync(join(scratch, `${name}.said`))))
  const versions = () => agents.map((agent) => agent.state()?.version)
  const upgrade = async (batchSize: (number | string)[]) =>
    (
      await server.data('POST', '/api/tasks', {
        upgrade: {},
        target: { selector: 'web[01-20]' },
        strategy: 'ROLLING',
        batchSize,
        maxFailures: 0,
      })
    ).taskId as string

  // Open during the bad release and into the good one.
  const open = async (hostname: string) => {
    const [host] = (await server.data('GET', `/api/hosts?selector=${hostname}`)).content
    const { sessionId } = await server.data('POST', '/api/terminals', {
      hostId: host.id,
      cols: 80,
      rows: 24,
      shell: '/bin/sh',
    })
    return { sessionId: sessionId as string, client: await ScriptedTerminal.attach(server, sessionId) }
  }
  const terminals = [await open('web19'), await open('web20')]

  await release(server, key, bad)
  const broken = await finished(server, await upgrade([1, '25%']))
  t.deepEqual(
    [broken.status, broken.results[0]?.error, broken.counts.SKIPPED],
    ['FAILED', 'rolled back: 0.2.0 ended 3 times before it was linked', count - 1],
  )
  await until('the first agent is linked again', () => agents[0]?.state()?.linked === true)
  t.deepEqual(new Set(versions()), new Set(['0.1.0']))
  t.true(
    agents.slice(1).every(({ dataDir }) => !existsSync(join(dataDir, 'releases'))),
    'the rest is untouched',
  )

  await release(server, key, good)
  const began = performance.now()
  const rollout = await upgrade([1, '100%'])
  const isUpgraded = (agent: (typeof agents)[number]) =>
    agent.state()?.version === '0.3.0' && agent.state()?.linked
  // The first agent alone, then all others at once.
  await counted(server, rollout, ({ RUNNING }) => RUNNING >= count / 2)
  await until(
    'all agents without terminals are upgraded',
    () => agents.slice(0, -2).every(isUpgraded),
    10 * patience,
  )
  const most = Math.round(performance.now() - began)
  for (const { client, sessionId } of terminals) {
    client.send('TERMINAL_INPUT', { data: 'echo still $((40 + 2))\n' })
    await until('the terminal answers', () => client.text.includes('still 42'))
    client.send('TERMINAL_INPUT', { data: 'exit\n' })
    await client.closed
    t.like(await server.data('GET', `/api/terminals/${sessionId}`), {
      status: 'CLOSED',
      exitCode: 0,
      reason: null,
    })
  }
  const done = await finished(server, rollout)
  const took = Math.round(performance.now() - began)
  t.log(`18 agents in ${most} ms, all 20 in ${took} ms`)
  t.deepEqual([done.status, done.counts.SUCCESS], ['SUCCESS', count], JSON.stringify(done.results))
  t.deepEqual(new Set(versions()), new Set(['0.3.0']))

  writeFileSync(stop, '')
  const scripts = await finished(server, taskId)
  t.is(scripts.counts.SUCCESS, count)
  const hosts = (await server.data('GET', '/api/hosts?size=100')).content as {
    id: number
    hostname: string
  }[]
  const output = await entries(server, taskId)
  for (const name of names) {
    t.is(readFileSync(join(scratch, name), 'utf8'), 'start\n', `${name} starts once`)
    const { id } = hosts.find(({ hostname }) => hostname === name) ?? { id: 0 }
    const said = output.filter(({ hostId }) => hostId === id).map(({ data }) => data)
    t.is(said.join(''), readFileSync(join(scratch, `${name}.said`), 'utf8'), name)
  }
})
