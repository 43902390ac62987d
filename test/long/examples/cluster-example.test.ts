import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Server } from '../../../src/core/protocol/http/server.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { clusterTest as test } from '../../helpers/cluster/cluster.ts'
import { restCaller, startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { onSteadyPort } from '../../helpers/servers/steady-port.ts'
import { until } from '../../helpers/until.ts'

test('examples/cluster/up starts three servers behind haproxy: agents spread over them, and exec runs on all', async (t) => {
  const home = temporaryDirectory(t)
  // The user postgres must be able to reach its directory.
  chmodSync(home, 0o755)
  const directory = join(home, 'cluster')
  const script = (name: string, port: number) => {
    const env = {
      ...cleanEnv(home),
      PATH: `${process.env['PATH']}:/usr/sbin`,
      RSM_CLUSTER_PORT: String(port),
    }
    return spawnSync(resolve('examples/cluster', name), [directory], { env, encoding: 'utf8' })
  }
  t.teardown(() => script('down', 0))
  const port = await onSteadyPort(async (free) => {
    const up = script('up', free)
    if (up.status !== 0) throw new Error(up.stderr)
    t.regex(up.stdout, new RegExp(`^URL +http://127.0.0.1:${free}$`, 'm'))
    return free
  })
  const password = readFileSync(join(directory, 'password'), 'utf8').trim()
  const front: TestServer = {
    url: `http://127.0.0.1:${port}`,
    dataDir: '',
    token: '',
    ...restCaller(() => front),
    restart: () => Promise.reject(new Error('it is a balancer')),
    stop: () => Promise.reject(new Error('it is a balancer')),
  }
  front.token = (await front.data('POST', '/api/auth/login', { username: 'admin', password })).token
  for (const hostname of ['web1', 'web2', 'web3']) await realAgent(t, front, { hostname })
  const servers = async (): Promise<Server[]> => (await front.data('GET', '/api/servers')).content
  await until(
    'all agents are linked',
    async () => (await servers()).reduce((sum, { links }) => sum + links, 0) === 3,
  )
  const seen = await servers()
  t.deepEqual(
    seen.map(({ name }) => name),
    ['a', 'b', 'c'],
  )
  // The balancer counts all connections, including API calls.
  t.true(seen.filter(({ links }) => links > 0).length > 1, JSON.stringify(seen))
  const env = cleanEnv(home, { RSM_URL: front.url, RSM_TOKEN: front.token })
  const ran = await runRsm(['exec', '-w', 'web[1-3]', '--', 'echo "it is $RSM_HOST"'], env)
  t.is(ran.exit, 0, ran.stderr)
  t.deepEqual(
    ran.stdout.trim().split('\n').sort(),
    [1, 2, 3].map((at) => `web${at}: it is web${at}`),
  )
  const status = await runRsm(['server', 'status', '--url', front.url], env)
  t.regex(status.stdout, /^NAME +VERSION +ADDRESS/m, status.stderr)
  t.is(script('up', port).status, 0, 'a second up finds everything running')
  t.is(script('down', port).status, 0)
  await t.throwsAsync(fetch(`${front.url}/api/health`))
})

test('examples/cluster/up names a directory in which PostgreSQL cannot run', (t) => {
  const home = temporaryDirectory(t)
  const env = { ...cleanEnv(home), PATH: `${process.env['PATH']}:/usr/sbin` }
  // Root must run PostgreSQL as another user; other users run it themselves, and cannot access /root.
  const directory = process.getuid?.() === 0 ? join(home, 'cluster') : '/root/cluster'
  const up = spawnSync(resolve('examples/cluster', 'up'), [directory], { env, encoding: 'utf8' })
  t.is(up.status, 1)
  t.regex(up.stderr, /the user postgres cannot reach .*: give another directory|Permission denied/)
})

test('examples/cluster/up names a port that is in use, starts nothing, and does not mistake the server there for its own', async (t) => {
  const home = temporaryDirectory(t)
  chmodSync(home, 0o755)
  const directory = join(home, 'cluster')
  const foreign = await startTestServer(t)
  const port = Number(new URL(foreign.url).port)
  for (const [first, what] of [
    [port, 'haproxy'],
    [port - 1, 'a'],
    [port - 4, 'PostgreSQL'],
  ] as const) {
    const env = { ...cleanEnv(home), PATH: `${process.env['PATH']}:/usr/sbin`, RSM_CLUSTER_PORT: `${first}` }
    // Not spawnSync, because the server of this process must answer.
    const up = spawn(resolve('examples/cluster/up'), [directory], { env })
    const [out, err, [exit]] = await Promise.all([text(up.stdout), text(up.stderr), once(up, 'exit')])
    t.is(exit, 1)
    t.is(out, '')
    t.is(
      err,
      `up: port ${port}, for ${what}, is in use: stop that program, or set RSM_CLUSTER_PORT to the first of five free ports\n`,
    )
    t.false(existsSync(join(directory, 'postgres')))
  }
})
